// Package queue opens handles on message stores in Redis. One subscription wakes all handles of a
// backend, and one key lists its queues.
package queue
