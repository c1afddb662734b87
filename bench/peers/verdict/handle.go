package verdict

import (
	"context"
	"errors"
	"sync"

	"github.com/delayq/delayq/backend"
)

// A door is what opens and closes a handle.
type door struct {
	once sync.Once
	shut chan struct{}
}

func newDoor() door { return door{shut: make(chan struct{})} }

func (d *door) ready(ctx context.Context) error {
	select {
	case <-d.shut:
		return backend.ErrClosed
	default:
		return ctx.Err()
	}
}

// closeOnce runs f at the first call.
func (d *door) closeOnce(f func() error) (err error) {
	d.once.Do(func() {
		close(d.shut)
		err = f()
	})
	return err
}

// A house closes with itself the handles that were opened on it.
type house struct {
	mu      sync.Mutex
	handles []backend.Queue
	closed  bool
}

// admit makes a handle, unless the house is closed.
func (h *house) admit(ctx context.Context, open func() (backend.Queue, error)) (backend.Queue, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, backend.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := open()
	if err == nil {
		h.handles = append(h.handles, q)
	}
	return q, err
}

func (h *house) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	var errs []error
	for _, q := range h.handles {
		errs = append(errs, q.Close())
	}
	h.handles = nil
	return errors.Join(errs...)
}

// each answers a call on several messages one by one: no peer has a call for many that a worker settles.
func each[T any](ctx context.Context, d *door, items []T, do func(T) error) []error {
	errs := make([]error, len(items))
	for i, item := range items {
		if errs[i] = d.ready(ctx); errs[i] != nil {
			continue
		}
		if errs[i] = do(item); errs[i] != nil && ctx.Err() != nil {
			errs[i] = errors.Join(ctx.Err(), errs[i]) // which some clients hide
		}
	}
	return errs
}

// lacks answers what a peer has no word for.
func lacks(peer, operation string) error {
	return &backend.UnsupportedError{Backend: peer, Op: operation}
}

// shared is what the handles of one process on one queue have in common, by the queue's name.
type shared[T interface{ stop() error }] struct {
	mu    sync.Mutex
	users map[string]int
	all   map[string]T
}

// join makes it for the first one.
func (s *shared[T]) join(name string, open func(string) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users, s.all = make(map[string]int), make(map[string]T)
	}
	if s.users[name]++; s.users[name] == 1 {
		s.all[name] = open(name)
	}
	return s.all[name]
}

// leave stops it after the last one.
func (s *shared[T]) leave(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[name]--; s.users[name] > 0 {
		return nil
	}
	last := s.all[name]
	delete(s.all, name)
	return last.stop()
}
