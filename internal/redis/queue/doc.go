// Package queue makes a handle of what stores messages in Redis: one goroutine claims for all Receives,
// sleeps until something is due, and is woken by a subscription that all queues of a backend share.
package queue
