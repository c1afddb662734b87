// Package zsetpoll is the Redis backend for every Redis: a single server, a Sentinel group or a Cluster. Messages are scored by
// due time in a sorted set, and workers claim what is due.
//
// It asks only when it must: a claim says when the next message falls due, and the sleeping workers wake then; a push that becomes
// the head wakes them earlier, from any process; an interval ([Poll]) is the safety net for a lost wake-up. All workers of one
// handle share one fetcher.
//
// # URLs
//
// zsetpoll://[USER:PASSWORD@]HOST[:PORT]/QUEUE opens a queue; package internal/redisurl documents the parameters for TLS,
// databases, Clusters and Sentinel; claims and poll are [Claims] and [Poll].
//
// # What it promises
//
// Everything that package delayq offers: order by (due, push order), cancelling, rescheduling, deduplication, dead letters, leases
// kept by Redis. A message that is pushed is as durable as the server is set up to be; the first Open warns of a server that may
// lose messages, with the remedy.
//
// # Time
//
// The clock is the server's. Due times and leases are whole milliseconds, rounded up. With delayq.WithClock a queue runs in virtual time against
// a real server.
//
// # Cost
//
// docs/redis.md draws the keys and counts the bytes. An idle queue with a waiting worker sends one command a second.
package zsetpoll
