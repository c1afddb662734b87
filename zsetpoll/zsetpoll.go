package zsetpoll

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/setup"
)

// Backend keeps queues in Redis. It is safe for concurrent use.
type Backend struct {
	queues *queue.Backend
	traits backend.Traits
}

var _ backend.Backend = (*Backend)(nil)

// An Option sets up a backend in [New]. One out of range is reported by Open.
type Option func(*setup.Config)

// New returns a backend on a client of a single server, a Cluster or a Sentinel group. The caller
// closes the client, after the backend. Nothing is sent before the first queue is opened.
func New(client redis.UniversalClient, opts ...Option) *Backend {
	c := setup.Default("zsetpoll", client)
	if client == nil {
		c.Reject(backend.Invalid("client", nil, "a go-redis client"))
	}
	c.Reject(setup.Apply(&c, opts, "zsetpoll", "the result of Claims, Poll, Prefix, Shards, WaitReplicas or WaitDisk"))
	if c.Claimer != nil && c.Shards > 1 {
		c.Reject(backend.Invalid("zsetpoll.Shards", c.Shards, "1 where Claims is not Script"))
	}
	return &Backend{queues: setup.Backend(c), traits: c.Traits()}
}

// Open returns a handle on the queue of that name. The first Open checks the server and warns of
// settings that may lose messages.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	return b.queues.Open(ctx, name, o)
}

// Close closes all queues, and the client where a URL made it. Messages stay in Redis. It waits up
// to 5 s for calls under way; where the server does not reply to them in that time, the error
// matches [backend.ErrUnavailable], and they end by the client's timeouts.
func (b *Backend) Close() error { return b.queues.Close() }

// Reshard changes the number of shards of a queue, while programs push to it and take from it, with the
// option [Shards] or without. From then on messages with new ids go to n new shards. Those that are there
// stay where they are, and the old shards end with the last of them, dead letters and ids that UniqueFor
// keeps included. Until then a push asks two shards. A Reshard that was stopped is finished by
// the programs that have the queue open. n is a power of two from 1 to 256.
func (b *Backend) Reshard(ctx context.Context, queueName string, n int) error {
	return queue.Reshard(ctx, b.queues, queueName, n)
}

// Claims chooses how workers claim messages, by default [Script].
func Claims(m Mode) Option {
	return func(c *setup.Config) {
		if m < Script || m > Mover {
			c.Reject(backend.Invalid("zsetpoll.Claims", int(m), "Script, Arbitrate or Mover"))
		}
		c.Claimer = m.claimer()
	}
}

// Poll sets how long an idle queue sleeps when no wake-up comes, 10 ms to 1 min, 1 s by default. It
// bounds how late a lost wake-up can make a message. More than a hundred open queues share a
// hundred looks a second.
func Poll(d time.Duration) Option {
	return func(c *setup.Config) { c.SetPoll("zsetpoll.Poll", d) }
}

// Shards splits each queue into n shards, a power of two from 1 to 256; 1 by default. On a Cluster the
// shards are on all masters, where a queue without shards is on one. A message is in the shard that
// follows from its id. Everything goes on as on one queue, except for two things: messages of
// different shards may change places, by a second, so the backend lacks [backend.Ordering]; and where
// wake-ups are lost, messages may be late by 1.25 times [Poll] for each shard.
//
// A queue keeps the number that it is first opened with, and [Backend.Reshard] changes it. A program that
// opens it with another number, or without this option, goes on with the queue's own. A queue without
// shards, with messages or not, gets its shards when it is opened with some. Programs that have it open
// without shards follow with their next push, or when a claim finds nothing. Claims other than
// [Script] cannot: there they return a [backend.InvalidError].
func Shards(n int) Option { return func(c *setup.Config) { c.SetShards("zsetpoll.Shards", n) } }

// Prefix sets the beginning of all keys, "delayq" by default: 1 to 64 bytes without braces.
func Prefix(p string) Option { return func(c *setup.Config) { c.SetPrefix(p) } }

// WaitReplicas makes a push wait until n replicas, 1 to 100, have the message, for at most within,
// 1 ms to 1 min. If they do not have it in time, the push fails with [backend.ErrUnconfirmed]: the
// server has stored the message, and the message is lost only with the server.
//
// Redis replicates after it replies. Without this option a message may be lost with a master whose
// replicas lag behind. With it, a message is lost only if a replica without it is promoted.
//
// Concurrent pushes wait together. Redis checks ten times a second whether a wait is over. A cancel
// or an ack does not wait. The client is one of a single server, a Sentinel group or a Cluster.
func WaitReplicas(n int, within time.Duration) Option {
	return func(c *setup.Config) {
		c.SetConfirm("zsetpoll.WaitReplicas", script.Confirmation{Replicas: n, Within: within})
	}
}

// WaitDisk is [WaitReplicas] for disks: a push waits until the append-only files of the server and
// of n replicas, 0 to 100, have the message on disk. It needs Redis 7.2 or newer with appendonly
// yes; otherwise Open fails. With appendfsync everysec a push waits for up to a second.
func WaitDisk(n int, within time.Duration) Option {
	return func(c *setup.Config) {
		c.SetConfirm("zsetpoll.WaitDisk", script.Confirmation{Replicas: n, Disk: true, Within: within})
	}
}

// Traits returns the backend's promises: everything, to the millisecond; with [Shards], all but order.
func (b *Backend) Traits() backend.Traits { return b.traits }
