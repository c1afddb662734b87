package list

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Queue is a handle. It is safe for concurrent use. Its methods are as in backend.Queue.
type Queue struct {
	backend.Unsupported // for methods that backend.Queue gets later
	*store
	clock  clockwork.Clock
	once   sync.Once
	closed chan struct{}
}

// locked runs do under the store's lock, unless the handle is closed or ctx has ended.
func (q *Queue) locked(ctx context.Context, do func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.closed:
		return backend.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q.now = q.clock.Now()
	do()
	return nil
}

// each does one thing to each of n messages, and wakes the Receives that wait.
func (q *Queue) each(ctx context.Context, n int, do func(i int) error) []error {
	errs := make([]error, n)
	err := q.locked(ctx, func() {
		for i := range n {
			errs[i] = do(i)
		}
		close(q.changed)
		q.changed = make(chan struct{})
	})
	if err != nil {
		return backend.FailAll(n, err)
	}
	return errs
}

// Close takes the lock, so that a Receive that is under way takes nothing afterwards.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.once.Do(func() { close(q.closed) })
	return nil
}

func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.each(ctx, len(ms), func(i int) error {
		m := &message{Message: ms[i]}
		if q.byID[m.ID] != nil {
			return backend.ErrDuplicate
		}
		m.Body, m.Headers = bytes.Clone(m.Body), maps.Clone(m.Headers)
		if m.Due.IsZero() {
			m.Due = q.now.Add(m.Delay)
		}
		q.add(m)
		return nil
	})
}

func (q *Queue) Receive(ctx context.Context, limit int, lease time.Duration) (ds []backend.Delivery, err error) {
	for {
		var next time.Time
		var changed chan struct{}
		err := q.locked(ctx, func() { ds, next, changed = q.take(limit, lease) })
		if err != nil || len(ds) > 0 {
			return ds, err
		}
		q.sleep(ctx, next, changed)
	}
}

// take leases due messages. Without any, next is the time of the next one, zero for never.
func (s *store) take(limit int, lease time.Duration) (ds []backend.Delivery, next time.Time, changed chan struct{}) {
	var due []*message
	for _, m := range s.all {
		free := m.Due
		if s.leased(m) {
			free = m.until
		}
		switch {
		case m.dead():
		case !free.After(s.now):
			due = append(due, m)
		case next.IsZero() || free.Before(next):
			next = free
		}
	}
	slices.SortStableFunc(due, func(a, b *message) int { return a.Due.Compare(b.Due) })
	for _, m := range due[:min(limit, len(due))] {
		s.last++
		m.token, m.until, m.attempts = s.last, s.now.Add(lease), m.attempts+1
		ds = append(ds, backend.Delivery{
			ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due,
			Attempt: m.attempts, Token: backend.Token{Lo: m.token}, Until: m.until,
		})
	}
	return ds, next, s.changed
}

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

func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.each(ctx, len(ls), func(i int) error { return q.held(ls[i], q.remove) })
}

func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.each(ctx, len(rs), func(i int) error {
		return q.held(rs[i].Lease, func(m *message) {
			m.token = 0
			if rs[i].Untouched {
				m.attempts--
			} else {
				m.Due = q.now.Add(rs[i].Delay)
			}
			if rs[i].NewHeaders {
				m.Headers = maps.Clone(rs[i].Headers)
			}
		})
	})
}

func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	return ends, q.each(ctx, len(ls), func(i int) error {
		return q.held(ls[i], func(m *message) {
			m.until = q.now.Add(lease)
			ends[i] = m.until
		})
	})
}

func (q *Queue) Dead(ctx context.Context, bs []backend.Burial) []error {
	return q.each(ctx, len(bs), func(i int) error {
		return q.held(bs[i].Lease, func(m *message) {
			q.remove(m)
			m.token, m.reason, m.died = 0, bs[i].Reason, q.now
			q.add(m)
		})
	})
}

func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error { return q.waiting(ids[i], q.remove) })
}

func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.each(ctx, len(ms), func(i int) error {
		return q.waiting(ms[i].ID, func(m *message) {
			if m.Due = ms[i].Due; m.Due.IsZero() {
				m.Due = q.now.Add(ms[i].Delay)
			}
		})
	})
}

func (q *Queue) Stats(ctx context.Context) (st backend.Stats, err error) {
	err = q.locked(ctx, func() {
		for _, m := range q.all {
			switch {
			case m.dead():
				st.Dead++
				continue
			case q.leased(m):
				st.InFlight++
				continue
			case m.Due.After(q.now):
				st.Scheduled++
			default:
				st.Ready++
			}
			if st.HeadDue.IsZero() || m.Due.Before(st.HeadDue) {
				st.HeadDue = m.Due
			}
		}
	})
	return st, err
}

// page shows the messages that have a time, by time and place. The cursor is both of the last one
// shown.
func page[T any](ctx context.Context, q *Queue, cursor string, limit int, at func(*message) time.Time, show func(*message) T) (shown []T, next string, err error) {
	var ns int64
	var place uint64
	if n, _ := fmt.Sscanf(cursor, "%d.%d", &ns, &place); n != 2 && cursor != "" {
		return nil, "", backend.Invalid("cursor", cursor, "one that came with a page")
	}
	after := time.Unix(0, ns)
	err = q.locked(ctx, func() {
		var rest []*message
		for _, m := range q.all {
			if t := at(m); !t.IsZero() && (cursor == "" || t.After(after) || t.Equal(after) && m.place > place) {
				rest = append(rest, m)
			}
		}
		slices.SortStableFunc(rest, func(a, b *message) int { return at(a).Compare(at(b)) })
		for _, m := range rest[:min(limit, len(rest))] {
			shown = append(shown, show(m))
		}
		if n := len(shown); n < len(rest) {
			next = fmt.Sprintf("%d.%d", at(rest[n-1]).UnixNano(), rest[n-1].place)
		}
	})
	return shown, next, err
}

func (q *Queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	due := func(m *message) (t time.Time) {
		if !m.dead() && !q.leased(m) {
			t = m.Due
		}
		return t
	}
	return page(ctx, q, cursor, limit, due, func(m *message) backend.Pending {
		return backend.Pending{ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due, Attempts: m.attempts}
	})
}

func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	died := func(m *message) time.Time { return m.died }
	return page(ctx, q, cursor, limit, died, func(m *message) backend.DeadLetter {
		return backend.DeadLetter{
			ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due,
			Attempts: m.attempts, Reason: m.reason, Died: m.died,
		}
	})
}

func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error {
		return q.onDead(ids[i], func(m *message) {
			q.remove(m)
			m.attempts, m.Due, m.died = 0, q.now, time.Time{}
			q.add(m)
		})
	})
}

func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error { return q.onDead(ids[i], q.remove) })
}

func (q *Queue) Purge(ctx context.Context) (removed int64, err error) {
	err = q.locked(ctx, func() {
		removed = int64(len(q.all))
		q.all = nil
		clear(q.byID)
	})
	return removed, err
}
