package zsetpoll

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/store"
)

// Backend keeps queues in Redis. It is safe for concurrent use.
type Backend struct {
	store *queue.Backend
	poll  time.Duration
}

var _ backend.Backend = (*Backend)(nil)

// An Option sets up a backend in [New]. One out of range is reported by Open.
type Option func(*options)

type options struct {
	store.Config
	mode Mode
}

// New returns a backend on a client of a single server, a Cluster or a Sentinel group. The caller
// closes the client, after the backend. Nothing is sent before the first queue is opened.
func New(client redis.UniversalClient, opts ...Option) *Backend {
	o := options{Config: store.Config{
		Config: queue.Config{Name: "zsetpoll", Client: client, Poll: queue.DefaultPoll},
		Prefix: store.DefaultPrefix,
	}}
	if client == nil {
		o.reject(backend.Invalid("client", nil, "a go-redis client"))
	}
	for _, set := range opts {
		if set == nil {
			o.reject(backend.Invalid("zsetpoll option", nil, "the result of Claims, Poll, Prefix, WaitReplicas or WaitDisk"))
			continue
		}
		set(&o)
	}
	o.Claimer = o.mode.claimer
	return &Backend{store: store.NewBackend(o.Config), poll: o.Poll}
}

// Open returns a handle on the queue of that name. The first Open checks the server and warns of what
// may lose messages.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	return b.store.Open(ctx, name, o)
}

// Close closes all queues, and the client where a URL made it. Messages stay in Redis. It waits up to 5 s for calls under way; where the
// server does not reply to them in that time, the error matches [backend.ErrUnavailable], and they end by the client's timeouts.
func (b *Backend) Close() error { return b.store.Close() }

func (o *options) reject(err error) { o.Err = errors.Join(o.Err, err) }

// Claims chooses how workers claim messages, by default [Script].
func Claims(m Mode) Option {
	return func(o *options) {
		if m < Script || m > Mover {
			o.reject(backend.Invalid("zsetpoll.Claims", int(m), "Script, Arbitrate or Mover"))
		}
		o.mode = m
	}
}

// Poll sets how long an idle queue sleeps when no wake-up comes, 10 ms to 1 min, 1 s by default. It
// bounds how late a lost wake-up can make a message. More than a hundred open queues share a hundred
// looks a second.
func Poll(d time.Duration) Option {
	return func(o *options) {
		if d < 10*time.Millisecond || d > time.Minute {
			o.reject(backend.Invalid("zsetpoll.Poll", d, "10ms to 1m"))
		}
		o.Poll = d
	}
}

// Prefix sets what all keys begin with, "delayq" by default: 1 to 64 bytes without braces.
func Prefix(p string) Option {
	return func(o *options) {
		o.reject(store.ValidPrefix(p))
		o.Prefix = p
	}
}

// WaitReplicas has a push wait until that many replicas have the message too, 1 to 100, and for so long at most, 1 ms to 1 min. What it waits for
// in vain is [backend.ErrUnconfirmed]: the message is stored, and lost only if the server is. Redis replicates behind its
// replies, so that without this a message may be lost with a master that its replicas have not kept up with; with it, only
// when a replica is promoted that is not among those that had it. Concurrent pushes wait together; Redis
// looks ten times a second whether a wait is over. A cancel or an ack does not wait.
// On a client of a single server, a Sentinel group or a Cluster.
func WaitReplicas(n int, within time.Duration) Option {
	return func(o *options) {
		o.Wait("zsetpoll.WaitReplicas", script.Confirmation{Replicas: n, Within: within})
	}
}

// WaitDisk is [WaitReplicas] on disk: a push waits until the server has written the message to the disk with its append-only file, and so
// have that many replicas, 0 to 100. It takes Redis 7.2 or newer with appendonly yes; elsewhere Open fails. With appendfsync
// everysec a push waits for up to a second.
func WaitDisk(n int, within time.Duration) Option {
	return func(o *options) {
		o.Wait("zsetpoll.WaitDisk", script.Confirmation{Replicas: n, Disk: true, Within: within})
	}
}

// Traits returns what the backend promises: everything, to the millisecond.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Name: "zsetpoll", Resolution: store.Resolution, Sweep: b.poll}
}
