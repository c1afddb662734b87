package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// Config is what the backends on Redis have in common.
type Config struct {
	Name   string // of the backend
	Client redis.UniversalClient
	Owned  bool          // Close closes the client
	Poll   time.Duration // how long an idle queue sleeps without a wake-up
	Err    error         // of an option; Open reports it

	// Calls are those of the client, of which Close waits for the last. NewBackend makes it where it is nil.
	Calls *call.Group

	// Triggered says that a key which expires tells when the first message is due.
	Triggered bool

	// Store makes a queue's.
	Store func(ctx context.Context, name string, o backend.Options) (Store, error)
	// KeyOf tells whether a key is one of a queue's.
	KeyOf func(key, queue string) bool
	// Check warns of what is wrong with the server, before the first queue.
	Check func(ctx context.Context, calls *call.Group, client redis.UniversalClient, log *slog.Logger)
}

// DefaultPoll is that of a Config.
const DefaultPoll = time.Second

// Backend opens queues on one client. All of them share one subscription.
type Backend struct {
	Config
	hub *Hub

	mu      sync.Mutex
	queues  map[*Queue]struct{}
	closed  bool
	checked chan struct{} // closed when the check is over; nil before it starts
}

// NewBackend returns a backend; nothing is sent before the first Open.
func NewBackend(c Config) *Backend {
	if c.Calls == nil {
		c.Calls = new(call.Group)
	}
	b := &Backend{Config: c, hub: NewHub(c.Client, c.Poll), queues: make(map[*Queue]struct{})}
	b.hub.triggered = c.Triggered
	return b
}

// HubOf returns what wakes a backend's queues. It is no method, since the backends that users see have
// the methods of this one.
func HubOf(b *Backend) *Hub { return b.hub }

// Open is as in backend.Backend.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := OpenOn(ctx, b, name, o)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// OpenOn opens a queue on a backend, for who adds to the handle.
func OpenOn(ctx context.Context, b *Backend, name string, o backend.Options) (*Queue, error) {
	if err := errors.Join(b.Err, ctx.Err()); err != nil {
		return nil, err
	}
	if err := b.check(ctx, o.Logger); err != nil {
		return nil, err
	}
	s, err := b.Store(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return b.enter(NewQueue(s, b.hub, b.Calls, o.Logger))
}

// check has the server checked once, by the first Open, and waits until that is over or the context ends.
func (b *Backend) check(ctx context.Context, log *slog.Logger) error {
	checked, err := b.startCheck(context.WithoutCancel(ctx), log)
	if err != nil {
		return err
	}
	select {
	case <-checked:
	case <-ctx.Done():
	}
	return nil
}

func (b *Backend) startCheck(ctx context.Context, log *slog.Logger) (checked <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	if b.checked == nil {
		done := make(chan struct{})
		b.checked = done
		b.Calls.Go(func() {
			defer close(done)
			b.Check(ctx, b.Calls, b.Client, log)
		})
	}
	return b.checked, nil
}

func (b *Backend) enter(q *Queue) (*Queue, error) {
	q.onClose = b.forget
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, backend.ErrClosed
	}
	b.queues[q] = struct{}{}
	b.mu.Unlock()
	if q.Tend != nil {
		q.start()
	}
	return q, nil
}

func (b *Backend) forget(q *Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queues, q)
}
