package verdict

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// closer is what a handle has to be closed once.
type closer struct {
	once sync.Once
	shut chan struct{}
}

func newCloser() closer { return closer{shut: make(chan struct{})} }

func (c *closer) ready(ctx context.Context) error {
	select {
	case <-c.shut:
		return backend.ErrClosed
	default:
		return ctx.Err()
	}
}

// closeOnce runs f at the first call.
func (c *closer) closeOnce(f func() error) (err error) {
	c.once.Do(func() {
		close(c.shut)
		err = f()
	})
	return err
}

// handles are those of a backend, which closes them with itself.
type handles struct {
	mu     sync.Mutex
	all    []backend.Queue
	closed bool
}

// add opens a handle, unless the backend is closed.
func (h *handles) add(ctx context.Context, open func() (backend.Queue, error)) (backend.Queue, error) {
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
		h.all = append(h.all, q)
	}
	return q, err
}

func (h *handles) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	var errs []error
	for _, q := range h.all {
		errs = append(errs, q.Close())
	}
	h.all = nil
	return errors.Join(errs...)
}

// each calls do for each item and returns the outcomes. No peer has a call that settles several messages.
func each[T any](ctx context.Context, d *closer, items []T, do func(T) error) []error {
	return backend.Each(len(items), func(i int) error {
		if err := d.ready(ctx); err != nil {
			return err
		}
		err := do(items[i])
		if err != nil && ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err) // some clients hide the context's
		}
		return err
	})
}

// extends is each for Extend, and returns the new ends too.
func extends(ctx context.Context, d *closer, ls []backend.Lease, extend func(backend.Lease) (time.Time, error)) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	i := -1
	errs := each(ctx, d, ls, func(l backend.Lease) (err error) {
		i++
		ends[i], err = extend(l)
		return err
	})
	return ends, errs
}

// trimDead is TrimDead for a peer that lists dead letters by the time of their death, and deletes them one by one.
func trimDead(ctx context.Context, q backend.Queue, r backend.Retention) (removed int, more bool, err error) {
	var all []backend.DeadLetter
	for cursor, again := "", true; again; again = cursor != "" {
		var page []backend.DeadLetter
		if page, cursor, err = q.ListDead(ctx, cursor, 100); err != nil {
			return 0, false, err
		}
		all = append(all, page...)
	}
	for i, l := range all {
		if r.MaxCount > 0 && i < len(all)-r.MaxCount || r.MaxAge > 0 && time.Since(l.Died) >= r.MaxAge {
			if err := q.DeleteDead(ctx, []string{l.ID})[0]; err != nil {
				return removed, false, err
			}
			removed++
		}
	}
	return removed, false, nil
}

// lacks is the error of an operation that a peer does not have.
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
