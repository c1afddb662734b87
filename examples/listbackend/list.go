// Package list is a backend with every method: three sets of messages under a mutex. It keeps all
// promises but speed and durability. Read it with docs/writing-a-backend.md, and copy it.
package list

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Backend keeps its queues in this process. Its methods are as in backend.Backend.
type Backend struct {
	stores sync.Map        // of *store by name
	open   context.Context // ends when the backend is closed
	close  context.CancelCauseFunc
}

// New returns an empty backend.
func New() *Backend {
	open, end := context.WithCancelCause(context.Background())
	return &Backend{open: open, close: end}
}

func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Name: "list", Lacks: backend.Lacking(backend.Durability)} // messages end with the process
}

func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := cmp.Or(context.Cause(b.open), ctx.Err()); err != nil {
		return nil, err
	}
	fresh := &store{waiting: list{}, leased: list{}, dead: list{}, unique: map[string]time.Time{}, changed: make(chan struct{})}
	s, _ := b.stores.LoadOrStore(name, fresh)
	q := &Queue{store: s.(*store), clock: cmp.Or(o.Clock, clockwork.NewRealClock())}
	q.open, q.close = context.WithCancelCause(b.open)
	return q, nil
}

func (b *Backend) Close() error { b.close(backend.ErrClosed); return nil }

// store is what all handles on one name share. Each message is in one of the lists.
type store struct {
	mu                    sync.Mutex
	waiting, leased, dead list
	unique                map[string]time.Time // by id, the end of UniqueFor
	last                  uint64               // number of a change: a place or a token
	changed               chan struct{}        // closed at the next change
}

type message struct {
	backend.Delivery
	at     int64  // nanoseconds since 1970 when it becomes due, or died
	place  uint64 // among messages of the same time
	reason string // why it died
}

func (m message) clone() message {
	m.Body, m.Headers = slices.Clone(m.Body), maps.Clone(m.Headers)
	return m
}

type list map[string]*message // by id

// after returns the messages behind a place, in order.
func (l list) after(at int64, place uint64) []*message {
	order := func(a, b *message) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.place, b.place)) }
	ms := slices.SortedFunc(maps.Values(l), order)
	i, _ := slices.BinarySearchFunc(ms, &message{at: at, place: place + 1}, order)
	return ms[i:]
}

// Queue is a handle. It is safe for concurrent use. Its methods are as in backend.Queue.
type Queue struct {
	backend.Unsupported // for methods that backend.Queue gets later
	*store
	clock clockwork.Clock
	now   time.Time       // when the lock was taken
	open  context.Context // ends when the handle is closed
	close context.CancelCauseFunc
}

// Close takes the lock, so that no Receive of this handle takes a message after it.
func (q *Queue) Close() error {
	_ = q.locked(context.Background(), func() { q.close(backend.ErrClosed) })
	return nil
}

// locked ends leases and runs do, under the lock, unless the handle is closed or ctx has ended.
func (q *Queue) locked(ctx context.Context, do func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := cmp.Or(context.Cause(q.open), ctx.Err()); err != nil {
		return err
	}
	q.now = q.clock.Now()
	for id, m := range q.leased {
		if !m.Until.After(q.now) {
			delete(q.leased, id)
			q.waiting[id] = m
		}
	}
	do()
	return nil
}

// each numbers and makes n changes, and wakes the Receives that wait.
func (q *Queue) each(ctx context.Context, n int, change func(i int) error) (errs []error) {
	if err := q.locked(ctx, func() {
		errs = backend.Each(n, func(i int) error { q.last++; return change(i) })
		close(q.changed)
		q.changed = make(chan struct{})
	}); err != nil {
		return backend.FailAll(n, err)
	}
	return errs
}

// take takes a message out of a list, and changes it. A leased one must have the token.
func (q *Queue) take(from *list, l backend.Lease, change func(*message)) error {
	m := (*from)[l.ID]
	switch {
	case m != nil && (from != &q.leased || m.Token == l.Token):
		delete(*from, l.ID)
		change(m)
		return nil
	case from == &q.leased:
		return backend.ErrLeaseLost
	case from == &q.waiting && q.leased[l.ID] != nil:
		return backend.ErrInFlight
	}
	return backend.ErrNotFound
}

func (q *Queue) wait(m *message, at time.Time) { m.Due, m.at, q.waiting[m.ID] = at, at.UnixNano(), m }

func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.each(ctx, len(ms), func(i int) error {
		m := ms[i]
		if q.waiting[m.ID] != nil || q.leased[m.ID] != nil || q.dead[m.ID] != nil || q.unique[m.ID].After(q.now) {
			return backend.ErrDuplicate
		}
		maps.DeleteFunc(q.unique, func(_ string, end time.Time) bool { return !end.After(q.now) })
		q.unique[m.ID] = q.now.Add(m.UniqueFor) // already over if UniqueFor is 0
		d := backend.Delivery{ID: m.ID, Body: slices.Clone(m.Body), Headers: maps.Clone(m.Headers)}
		q.wait(&message{Delivery: d, place: q.last}, m.DueAt(q.now))
		return nil
	})
}

func (q *Queue) Receive(ctx context.Context, limit int, lease time.Duration) (ds []backend.Delivery, err error) {
	for {
		var next int64 // when a message becomes due or a lease ends
		var changed chan struct{}
		err = q.locked(ctx, func() {
			next, changed = q.now.Add(time.Hour).UnixNano(), q.changed
			for _, m := range q.waiting.after(0, 0) {
				if m.Due.After(q.now) || len(ds) == limit {
					next = min(next, m.at)
					break
				}
				q.last++
				m.Attempt, m.Token, m.Until = m.Attempt+1, backend.Token{Lo: q.last}, q.now.Add(lease)
				delete(q.waiting, m.ID)
				q.leased[m.ID] = m
				ds = append(ds, m.clone().Delivery)
			}
			for _, m := range q.leased {
				next = min(next, m.Until.UnixNano())
			}
		})
		if err != nil || len(ds) > 0 {
			return ds, err
		}
		backend.SleepUntil(q.clock, time.Unix(0, next), changed, ctx.Done(), q.open.Done())
	}
}

func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.each(ctx, len(ls), func(i int) error { return q.take(&q.leased, ls[i], func(*message) {}) })
}

func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.each(ctx, len(rs), func(i int) error {
		return q.take(&q.leased, rs[i].Lease, func(m *message) {
			if rs[i].NewHeaders {
				m.Headers = maps.Clone(rs[i].Headers)
			}
			due := q.now.Add(rs[i].Delay)
			if rs[i].Untouched {
				m.Attempt, due = m.Attempt-1, m.Due
			}
			q.wait(m, due)
		})
	})
}

func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	return ends, q.each(ctx, len(ls), func(i int) error {
		return q.take(&q.leased, ls[i], func(m *message) {
			m.Until, q.leased[m.ID] = q.now.Add(lease), m
			ends[i] = m.Until
		})
	})
}

func (q *Queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.each(ctx, len(bs), func(i int) error {
		return q.take(&q.leased, bs[i].Lease, func(m *message) {
			m.at, m.place, m.reason, q.dead[m.ID] = q.now.UnixNano(), q.last, bs[i].Reason, m
		})
	})
}

func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error { return q.take(&q.waiting, backend.Lease{ID: ids[i]}, func(*message) {}) })
}

func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.each(ctx, len(ms), func(i int) error {
		return q.take(&q.waiting, backend.Lease{ID: ms[i].ID}, func(m *message) { q.wait(m, ms[i].DueAt(q.now)) })
	})
}

func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error {
		return q.take(&q.dead, backend.Lease{ID: ids[i]}, func(m *message) {
			m.Attempt, m.place = 0, q.last
			q.wait(m, q.now)
		})
	})
}

func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error { return q.take(&q.dead, backend.Lease{ID: ids[i]}, func(*message) {}) })
}

func (q *Queue) Stats(ctx context.Context) (st backend.Stats, err error) {
	err = q.locked(ctx, func() {
		waiting, scheduled := q.waiting.after(0, 0), q.waiting.after(q.now.UnixNano(), q.last)
		st.Scheduled, st.Ready = int64(len(scheduled)), int64(len(waiting)-len(scheduled))
		st.InFlight, st.Dead = int64(len(q.leased)), int64(len(q.dead))
		if len(waiting) > 0 {
			st.HeadDue = waiting[0].Due
		}
	})
	return st, err
}

// page returns messages of a list behind the cursor, which is the place of the last one before.
func page[T any](ctx context.Context, q *Queue, l *list, cursor string, limit int, show func(message) T) (shown []T, next string, err error) {
	var last message
	if n, _ := fmt.Sscanf(cursor, "%d.%d", &last.at, &last.place); n != 2 && cursor != "" {
		return nil, "", backend.Invalid("cursor", cursor, "one that came with a page")
	}
	err = q.locked(ctx, func() {
		rest := l.after(last.at, last.place)
		for _, m := range rest[:min(limit, len(rest))] {
			shown, next = append(shown, show(m.clone())), fmt.Sprintf("%d.%d", m.at, m.place)
		}
		if len(rest) <= limit {
			next = ""
		}
	})
	return shown, next, err
}

func (q *Queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	return page(ctx, q, &q.waiting, cursor, limit, func(m message) backend.Pending {
		return backend.Pending{ID: m.ID, Body: m.Body, Headers: m.Headers, Due: m.Due, Attempts: m.Attempt}
	})
}

func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return page(ctx, q, &q.dead, cursor, limit, func(m message) backend.DeadLetter {
		return backend.DeadLetter{ID: m.ID, Body: m.Body, Headers: m.Headers, Due: m.Due, Attempts: m.Attempt, Reason: m.reason, Died: time.Unix(0, m.at)}
	})
}

func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

func (q *Queue) Purge(ctx context.Context) (removed int64, err error) {
	err = q.locked(ctx, func() {
		removed = int64(len(q.waiting) + len(q.leased) + len(q.dead))
		q.waiting, q.leased, q.dead, q.unique = list{}, list{}, list{}, map[string]time.Time{}
	})
	return removed, err
}
