package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// Config is what the backends on this store have in common.
type Config struct {
	Name   string // of the backend
	Client redis.UniversalClient
	Owned  bool          // Close closes the client
	Prefix string        // of all keys
	Poll   time.Duration // how long an idle queue sleeps without a wake-up
	Err    error         // of an option; Open reports it

	// Triggers gives each message that is not due yet a key that expires when it is.
	Triggers bool

	// Claimer makes a queue's way to claim.
	Claimer func(*Store) Claimer
}

// Defaults of a Config.
const (
	DefaultPrefix = "delayq"
	DefaultPoll   = time.Second
)

// Backend opens queues on one client. All of them share one subscription.
type Backend struct {
	Config
	hub *Hub

	mu      sync.Mutex
	queues  map[*Queue]struct{}
	closed  bool
	checked sync.Once
}

// NewBackend returns a backend; nothing is sent before the first Open.
func NewBackend(c Config) *Backend {
	b := &Backend{Config: c, hub: NewHub(c.Client, c.Poll, slog.Default()), queues: make(map[*Queue]struct{})}
	b.hub.triggers = c.Triggers
	return b
}

// HubOf returns what wakes a backend's queues. It is no method, since the backends that users see have
// the methods of this one.
func HubOf(b *Backend) *Hub { return b.hub }

// Open is as in backend.Backend.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := errors.Join(b.Err, ctx.Err()); err != nil {
		return nil, err
	}
	b.checked.Do(func() { CheckServer(ctx, b.Client, o.Logger) })
	s := New(b.Config, name, o.Clock)
	q := NewQueue(s, b.Claimer(s), b.hub, o.Logger)
	q.onClose = b.forget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	b.queues[q] = struct{}{}
	return q, nil
}

func (b *Backend) forget(q *Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queues, q)
}

// Close is as in backend.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	open := b.queues
	was := b.closed
	b.queues, b.closed = make(map[*Queue]struct{}), true
	b.mu.Unlock()
	if was {
		return nil
	}
	for q := range open {
		_ = q.Close()
	}
	err := b.hub.Close()
	if b.Owned {
		err = errors.Join(err, b.Client.Close())
	}
	return err
}
