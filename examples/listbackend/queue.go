package list

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Queue is a handle. It is safe for concurrent use.
type Queue struct {
	store  *store
	clock  clockwork.Clock
	once   sync.Once
	closed chan struct{}
}

var (
	_ backend.Queue       = (*Queue)(nil)
	_ backend.Canceler    = (*Queue)(nil)
	_ backend.Inspector   = (*Queue)(nil)
	_ backend.DeadLetters = (*Queue)(nil)
)

// Close is as in backend.Queue.
func (q *Queue) Close() error {
	q.store.mu.Lock() // a Receive that is at it takes nothing afterwards
	defer q.store.mu.Unlock()
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *Queue) ready(ctx context.Context) error {
	select {
	case <-q.closed:
		return backend.ErrClosed
	default:
		return ctx.Err()
	}
}

// each answers a call on several messages, one at a time, under the store's lock.
func each[T any](ctx context.Context, q *Queue, items []T, do func(T) error) []error {
	q.store.mu.Lock()
	defer q.store.mu.Unlock()
	if err := q.ready(ctx); err != nil {
		return backend.FailAll(len(items), err)
	}
	defer q.store.wake()
	errs := make([]error, len(items))
	for i, item := range items {
		errs[i] = do(item)
	}
	return errs
}

// Schedule is as in backend.Queue.
func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return each(ctx, q, ms, func(m backend.Message) error {
		if q.store.byID[m.ID] != nil {
			return backend.ErrDuplicate
		}
		m.Body, m.Headers = bytes.Clone(m.Body), maps.Clone(m.Headers)
		if m.Due.IsZero() {
			m.Due = q.clock.Now().Add(m.Delay)
		}
		q.store.add(&message{Message: m}, false)
		return nil
	})
}

// Receive is as in backend.Queue.
func (q *Queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	for {
		ds, next, changed, err := q.take(ctx, limit, lease)
		if err != nil || len(ds) > 0 {
			return ds, err
		}
		q.sleep(ctx, next, changed)
	}
}

// sleep waits until something may have become due.
func (q *Queue) sleep(ctx context.Context, until time.Time, changed <-chan struct{}) {
	var due <-chan time.Time
	if !until.IsZero() {
		t := q.clock.NewTimer(until.Sub(q.clock.Now()))
		defer t.Stop()
		due = t.Chan()
		if !q.clock.Now().Before(until) {
			return // a fake clock has jumped before the timer was there
		}
	}
	select {
	case <-due:
	case <-changed:
	case <-ctx.Done():
	case <-q.closed:
	}
}

// take leases what is due, or says when something will be, or what to wait for.
func (q *Queue) take(ctx context.Context, limit int, lease time.Duration) (ds []backend.Delivery, next time.Time, changed <-chan struct{}, err error) {
	s := q.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := q.ready(ctx); err != nil {
		return nil, next, nil, err
	}
	now := q.clock.Now()
	var due []*message
	for _, m := range s.messages {
		free := m.Due
		if m.leased(now) {
			free = m.until
		}
		if !free.After(now) {
			due = append(due, m)
		} else if next.IsZero() || free.Before(next) {
			next = free
		}
	}
	slices.SortStableFunc(due, func(a, b *message) int { return a.Due.Compare(b.Due) })
	for _, m := range due[:min(limit, len(due))] {
		ds = append(ds, s.lease(m, now.Add(lease)))
	}
	return ds, next, s.changed, nil
}

func (s *store) lease(m *message, until time.Time) backend.Delivery {
	s.last++
	m.token, m.until = s.last, until
	m.attempts++
	return backend.Delivery{
		ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due, Attempt: m.attempts,
		Token: backend.Token{Lo: m.token}, Until: until,
	}
}

// held is the message of a lease that is in force.
func (q *Queue) held(l backend.Lease) (*message, error) {
	m := q.store.find(l.ID)
	if m == nil || m.token != l.Token.Lo || l.Token.Hi != 0 || !m.leased(q.clock.Now()) {
		return nil, backend.ErrLeaseLost
	}
	return m, nil
}

// Ack is as in backend.Queue.
func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return each(ctx, q, ls, func(l backend.Lease) error {
		m, err := q.held(l)
		if err == nil {
			q.store.remove(m)
		}
		return err
	})
}

// Nack is as in backend.Queue.
func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, q, rs, func(r backend.Return) error {
		m, err := q.held(r.Lease)
		if err != nil {
			return err
		}
		m.token = 0
		if r.Untouched {
			m.attempts--
		} else {
			m.Due = q.clock.Now().Add(r.Delay)
		}
		if r.NewHeaders {
			m.Headers = maps.Clone(r.Headers)
		}
		return nil
	})
}

// Extend is as in backend.Queue.
func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) (ends []time.Time, errs []error) {
	ends = make([]time.Time, 0, len(ls))
	errs = each(ctx, q, ls, func(l backend.Lease) error {
		m, err := q.held(l)
		ends = append(ends, time.Time{})
		if err == nil {
			m.until = q.clock.Now().Add(lease)
			ends[len(ends)-1] = m.until
		}
		return err
	})
	return slices.Grow(ends, len(ls))[:len(ls)], errs
}

// Cancel is as in backend.Canceler.
func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, q, ids, func(id string) error {
		m := q.store.find(id)
		switch {
		case m == nil:
			return backend.ErrNotFound
		case m.leased(q.clock.Now()):
			return backend.ErrInFlight
		}
		q.store.remove(m)
		return nil
	})
}

// Stats is as in backend.Inspector.
func (q *Queue) Stats(ctx context.Context) (st backend.Stats, err error) {
	if err := q.ready(ctx); err != nil {
		return st, err
	}
	q.store.mu.Lock()
	defer q.store.mu.Unlock()
	now := q.clock.Now()
	for _, m := range q.store.messages {
		switch {
		case m.leased(now):
			st.InFlight++
			continue
		case m.Due.After(now):
			st.Scheduled++
		default:
			st.Ready++
		}
		if st.HeadDue.IsZero() || m.Due.Before(st.HeadDue) {
			st.HeadDue = m.Due
		}
	}
	st.Dead = int64(len(q.store.dead))
	return st, nil
}
