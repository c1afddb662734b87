// Package zsetpoll is a Redis backend that asks a sorted set for what is due, and asks only when it must: the claim returns when the
// next message falls due, a push that becomes the head wakes sleepers, and a capped interval is the safety net.
package zsetpoll
