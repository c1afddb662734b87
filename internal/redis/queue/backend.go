package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/check"
)

// Backend opens queues on one client. All of them share one subscription.
type Backend struct {
	Config
	hub      *Hub
	registry *registry // nil for none

	mu      sync.Mutex
	queues  map[*handle.Queue]struct{}
	closed  bool
	checked chan struct{} // closed when the server check is over; nil before it starts
}

// NewBackend returns a backend; nothing is sent before the first Open.
func NewBackend(c Config) *Backend {
	if c.Calls == nil {
		c.Calls = new(call.Group)
	}
	b := &Backend{Config: c, hub: NewHub(c.Client, c.Poll), queues: make(map[*handle.Queue]struct{})}
	b.hub.triggered, b.hub.Go = c.Triggered, c.Calls.Go
	b.registry = newRegistry(&b.Config)
	return b
}

// Hub returns the backend's wake-up subscription.
func (b *Backend) Hub() *Hub { return b.hub }

// Open is as in backend.Backend. The first one has the server checked.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := errors.Join(b.Err, ctx.Err()); err != nil {
		return nil, err
	}
	checked, err := b.startCheck(context.WithoutCancel(ctx), o.Logger)
	if err != nil {
		return nil, err
	}
	select {
	case <-checked:
	case <-ctx.Done():
	}
	s, err := b.Source(ctx, name, o)
	if err == nil && s.Begin != nil {
		err = s.Begin(ctx)
	}
	if err != nil {
		return nil, err
	}
	q := handle.New(s.named(), &b.hub.Hub, o.Logger, func(q *handle.Queue) {
		b.remove(q)
		if s.Close != nil {
			s.Close()
		}
		b.registry.closed(name)
	})
	if err := b.add(q); err != nil {
		return nil, err
	}
	b.registry.opened(name, o.Logger)
	if s.Maintain != nil {
		q.Start()
	}
	return q, nil
}

// startCheck checks the server once. The channel is closed when the check is over.
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
			check.Check(ctx, b.Calls, b.Client, log)
		})
	}
	return b.checked, nil
}

func (b *Backend) add(q *handle.Queue) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	b.queues[q] = struct{}{}
	return nil
}

func (b *Backend) remove(q *handle.Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queues, q)
}
