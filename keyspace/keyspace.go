package keyspace

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/setup"
)

// Backend keeps queues in Redis. It is safe for concurrent use.
type Backend struct {
	queues   *queue.Backend
	traits   backend.Traits
	listener *listener
}

var _ backend.Backend = (*Backend)(nil)

// An Option sets up a backend in [New]. One out of range is reported by Open.
type Option func(*setup.Config)

// New returns a backend on a client of a single server, a Cluster or a Sentinel group. The caller
// closes the client, after the backend. Nothing is sent before the first queue is opened.
func New(client redis.UniversalClient, opts ...Option) *Backend {
	c := setup.Default("keyspace", client)
	c.Triggered = true
	masters, err := mastersOf(client)
	c.Reject(err)
	c.Reject(setup.Apply(&c, opts, "keyspace", "the result of Sweep, Prefix, Shards, WaitReplicas or WaitDisk"))
	b := setup.Backend(c)
	return &Backend{queues: b, traits: c.Traits(), listener: newListener(masters, b.Calls, b.Hub(), c.Prefix, c.Poll)}
}

// Sweep sets how often an idle queue looks by itself, 10 ms to 1 min, 1 s by default. It bounds how
// late a message is whose expiry Redis notices late, or not at all. More than a hundred open queues
// share a hundred looks a second, and their bound grows with their number.
func Sweep(d time.Duration) Option {
	return func(c *setup.Config) { c.SetPoll("keyspace.Sweep", d) }
}

// Shards splits each queue into n shards, a power of two from 1 to 256; 1 by default. On a Cluster the
// shards are on all masters, where a queue without shards is on one. A message is in the shard that
// follows from its id. Everything goes on as on one queue, except for two things: messages of
// different shards may change places, by a second, so the backend lacks [backend.Ordering]; and where
// wake-ups are lost, messages may be late by 1.25 times [Sweep] for each shard.
//
// A queue keeps the number that it is first opened with, and [Backend.Reshard] changes it. A program that
// opens it with another number, or without this option, goes on with the queue's own. A queue without
// shards, with messages or not, gets its shards when it is opened with some. Programs that have it open
// without shards follow with their next push, or when a claim finds nothing.
func Shards(n int) Option { return func(c *setup.Config) { c.SetShards("keyspace.Shards", n) } }

// Prefix sets the beginning of all keys, "delayq" by default: 1 to 64 bytes without braces.
func Prefix(p string) Option { return func(c *setup.Config) { c.SetPrefix(p) } }

// WaitReplicas makes a push wait until n replicas, 1 to 100, have the message, for at most within,
// 1 ms to 1 min. When they do not have it in time, the push fails with [backend.ErrUnconfirmed]:
// the message is stored, and lost only if the server is.
//
// Redis replicates after it replies. Without this option a message may be lost with a master whose
// replicas lag behind. With it, a message is lost only if a replica without it is promoted.
//
// Concurrent pushes wait together. Redis checks ten times a second whether a wait is over. A cancel
// or an ack does not wait. The client is one of a single server, a Sentinel group or a Cluster.
func WaitReplicas(n int, within time.Duration) Option {
	return func(c *setup.Config) {
		c.SetConfirm("keyspace.WaitReplicas", script.Confirmation{Replicas: n, Within: within})
	}
}

// WaitDisk is [WaitReplicas] on disk: a push waits until the server has written the message to the
// disk with its append-only file, and so have n replicas, 0 to 100. It takes Redis 7.2 or newer
// with appendonly yes; elsewhere Open fails. With appendfsync everysec a push waits for up to a
// second.
func WaitDisk(n int, within time.Duration) Option {
	return func(c *setup.Config) {
		c.SetConfirm("keyspace.WaitDisk", script.Confirmation{Replicas: n, Disk: true, Within: within})
	}
}

// Traits returns the backend's promises: everything, to the millisecond, within a sweep; with [Shards],
// all but order.
func (b *Backend) Traits() backend.Traits { return b.traits }

// Open is as in backend.Backend. The first Open subscribes to expiries, and enables the
// notifications where it may. If it may not, it says so to the logger; see [Backend.Degraded].
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.queues.Open(ctx, name, o)
	if err == nil && o.Clock == nil {
		b.listener.start(ctx, o.Logger)
	}
	return q, err
}

// Reshard changes the number of shards of a queue, while programs push to it and take from it, with the
// option [Shards] or without. From then on messages with new ids go to n new shards. Those that are there
// stay where they are, and the old shards end with the last of them, dead letters and ids that UniqueFor
// keeps included. Until then a push asks two shards. A Reshard that was stopped is finished by
// the programs that have the queue open. n is a power of two from 1 to 256.
func (b *Backend) Reshard(ctx context.Context, queueName string, n int) error {
	return queue.Reshard(ctx, b.queues, queueName, n)
}

// Degraded returns nil while expiries wake the workers, and before the first queue is opened.
// Otherwise it returns why they do not, and on which servers; then messages wait for the sweep. It
// checks again every minute, so that a remedy shows.
func (b *Backend) Degraded() error { return b.listener.degraded() }

// Close closes all queues, and the client where a URL made it. Messages stay in Redis. It waits up
// to 5 s for calls under way; where the server does not reply to them in that time, the error
// matches [backend.ErrUnavailable], and they end by the client's timeouts.
func (b *Backend) Close() error {
	b.listener.close()
	return b.queues.Close()
}

// A server is one that expires keys and tells so itself.
type server interface {
	redis.UniversalClient
	Options() *redis.Options
}

type cluster interface {
	ForEachMaster(ctx context.Context, do func(context.Context, *redis.Client) error) error
}

// mastersOf returns a function that lists the servers behind a client.
func mastersOf(client redis.UniversalClient) (func(context.Context) ([]server, error), error) {
	switch c := client.(type) {
	case cluster:
		return func(ctx context.Context) ([]server, error) { return listMasters(ctx, c) }, nil
	case server:
		return func(context.Context) ([]server, error) { return []server{c}, nil }, nil
	default:
		return nil, backend.Invalid("client", fmt.Sprintf("%T", client), "a *redis.Client or a *redis.ClusterClient")
	}
}
