// Package queue turns a message store in Redis into handles. A handle has one fetcher: a goroutine
// that claims for all Receive calls and sleeps until a message is due. One subscription wakes all
// handles of a backend.
package queue
