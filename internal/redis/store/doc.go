// Package store keeps the messages of one queue in Redis. Backends zsetpoll and keyspace share it:
// they differ in how a worker learns that a message is due, not in how messages are kept.
//
// docs/redis.md draws the keys.
package store
