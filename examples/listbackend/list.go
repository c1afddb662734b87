// Package list is a backend with every method, in sorted slices under a mutex. It keeps all
// promises but speed, durability and UniqueFor. Read it with docs/writing-a-backend.md, and copy
// it.
package list

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// Backend keeps its queues in this process. It is safe for concurrent use.
type Backend struct {
	mu     sync.Mutex // of all stores
	stores map[string]*store
	open   context.Context // ends when the backend is closed
	close  context.CancelFunc
}

// New returns an empty backend.
func New() *Backend {
	b := &Backend{stores: make(map[string]*store)}
	b.open, b.close = context.WithCancel(context.Background())
	return b
}

// Traits declares what is lacking: messages end with the process, and ids with their messages.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Name: "list", Lacks: backend.Lacking(backend.Durability, backend.UniqueWindows)}
}

// Open is as in backend.Backend.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open.Err() != nil {
		return nil, backend.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.stores[name] == nil {
		b.stores[name] = &store{byID: make(map[string]*message), changed: make(chan struct{})}
	}
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	q := &Queue{store: b.stores[name], mu: &b.mu, clock: o.Clock}
	q.open, q.close = context.WithCancel(b.open)
	return q, nil
}

// Close closes every handle.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close()
	return nil
}

// store is shared by all handles on one name. The backend's mutex guards it.
type store struct {
	now                   time.Time // when the lock was taken
	waiting, leased, dead list      // by due time, end of the lease, and death
	byID                  map[string]*message
	last                  uint64        // place or token
	changed               chan struct{} // closed at the next change
}

// list is sorted by time and place.
type list []*message

type message struct {
	backend.Message
	in       *list     // nil where it is in none
	at       time.Time // in that list
	place    uint64    // in push order, or in the order of deaths
	token    uint64    // of the lease
	attempts int
	reason   string // why it is dead
}

// find returns the index of the first message that is not before that time and place.
func (l list) find(at time.Time, place uint64) int {
	i, _ := slices.BinarySearchFunc(l, place, func(m *message, place uint64) int {
		return cmp.Or(m.at.Compare(at), cmp.Compare(m.place, place))
	})
	return i
}

// put takes a message out of the list that it is in, and puts it in another.
func (s *store) put(m *message, in *list, at time.Time, place uint64) {
	if m.in != nil {
		i := m.in.find(m.at, m.place)
		*m.in = slices.Delete(*m.in, i, i+1)
	}
	m.in, m.at, m.place = in, at, place
	*in = slices.Insert(*in, in.find(at, place), m)
}

func (s *store) remove(m *message) {
	s.put(m, new(list), s.now, 0)
	delete(s.byID, m.ID)
}

func (s *store) number() uint64 {
	s.last++
	return s.last
}

// wait puts a message among those that wait, until a time or, where it is zero, for a delay.
func (s *store) wait(m *message, at time.Time, delay time.Duration) {
	if m.Due = at; at.IsZero() {
		m.Due = s.now.Add(delay)
	}
	s.put(m, &s.waiting, m.Due, m.place)
}

// Queue is a handle. It is safe for concurrent use. Its methods are as in backend.Queue.
type Queue struct {
	backend.Unsupported // for methods that backend.Queue gets later
	*store
	mu    *sync.Mutex
	clock clockwork.Clock
	open  context.Context // ends when the handle is closed
	close context.CancelFunc
}

// Close takes the lock, so that a Receive that is under way takes nothing afterwards.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
	return nil
}

// locked runs do under the lock, unless the handle is closed or ctx has ended. Leases that have
// ended are no more.
func (q *Queue) locked(ctx context.Context, do func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open.Err() != nil {
		return backend.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q.now = q.clock.Now()
	for len(q.leased) > 0 && !q.leased[0].at.After(q.now) {
		q.wait(q.leased[0], q.leased[0].Due, 0)
	}
	do()
	return nil
}

// each changes messages one by one, and wakes the Receives that wait.
func each[T any](ctx context.Context, q *Queue, items []T, change func(T) error) []error {
	errs := make([]error, len(items))
	err := q.locked(ctx, func() {
		for i, item := range items {
			errs[i] = change(item)
		}
		close(q.changed)
		q.changed = make(chan struct{})
	})
	if err != nil {
		return backend.FailAll(len(items), err)
	}
	return errs
}

// held changes the message of a lease that is in force.
func (s *store) held(l backend.Lease, change func(*message)) error {
	m := s.byID[l.ID]
	if m == nil || m.in != &s.leased || l.Token != (backend.Token{Lo: m.token}) {
		return backend.ErrLeaseLost
	}
	change(m)
	return nil
}

// among changes a message of a list.
func (s *store) among(l *list, id string, change func(*message)) error {
	m := s.byID[id]
	switch {
	case m == nil || m.in != l && (m.in == &s.dead || l == &s.dead):
		return backend.ErrNotFound
	case m.in != l:
		return backend.ErrInFlight
	}
	change(m)
	return nil
}

func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return each(ctx, q, ms, func(pushed backend.Message) error {
		if q.byID[pushed.ID] != nil {
			return backend.ErrDuplicate
		}
		m := &message{Message: pushed, place: q.number()}
		m.Body, m.Headers = bytes.Clone(m.Body), maps.Clone(m.Headers)
		q.byID[m.ID] = m
		q.wait(m, m.Due, m.Delay)
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

// take leases due messages. Without any, next is the time to look again.
func (s *store) take(limit int, lease time.Duration) (ds []backend.Delivery, next time.Time, changed chan struct{}) {
	for len(ds) < limit && len(s.waiting) > 0 && !s.waiting[0].Due.After(s.now) {
		m := s.waiting[0]
		m.token, m.attempts = s.number(), m.attempts+1
		s.put(m, &s.leased, s.now.Add(lease), m.place)
		ds = append(ds, backend.Delivery{
			ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due,
			Attempt: m.attempts, Token: backend.Token{Lo: m.token}, Until: m.at,
		})
	}
	next = s.now.Add(time.Hour)
	for _, l := range []list{s.waiting, s.leased} {
		if len(l) > 0 && l[0].at.Before(next) {
			next = l[0].at
		}
	}
	return ds, next, s.changed
}

func (q *Queue) sleep(ctx context.Context, until time.Time, changed <-chan struct{}) {
	t := q.clock.NewTimer(until.Sub(q.clock.Now()))
	defer t.Stop()
	if !q.clock.Now().Before(until) {
		return // a fake clock has jumped before the timer was there
	}
	select {
	case <-t.Chan():
	case <-changed:
	case <-ctx.Done():
	case <-q.open.Done():
	}
}

func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return each(ctx, q, ls, func(l backend.Lease) error { return q.held(l, q.remove) })
}

func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, q, rs, func(r backend.Return) error {
		return q.held(r.Lease, func(m *message) {
			if r.NewHeaders {
				m.Headers = maps.Clone(r.Headers)
			}
			if r.Untouched {
				m.attempts--
			} else {
				m.Due = q.now.Add(r.Delay)
			}
			q.wait(m, m.Due, 0)
		})
	})
}

func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends, i := make([]time.Time, len(ls)), -1
	errs := each(ctx, q, ls, func(l backend.Lease) error {
		i++
		return q.held(l, func(m *message) {
			q.put(m, &q.leased, q.now.Add(lease), m.place)
			ends[i] = m.at
		})
	})
	return ends, errs
}

func (q *Queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return each(ctx, q, bs, func(b backend.DeadLetterRequest) error {
		return q.held(b.Lease, func(m *message) {
			m.reason = b.Reason
			q.put(m, &q.dead, q.now, q.number())
		})
	})
}

func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, q, ids, func(id string) error { return q.among(&q.waiting, id, q.remove) })
}

func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return each(ctx, q, ms, func(to backend.Move) error {
		return q.among(&q.waiting, to.ID, func(m *message) { q.wait(m, to.Due, to.Delay) })
	})
}

func (q *Queue) Stats(ctx context.Context) (st backend.Stats, err error) {
	err = q.locked(ctx, func() {
		ready := q.waiting.find(q.now, math.MaxUint64)
		st = backend.Stats{
			Scheduled: int64(len(q.waiting) - ready), Ready: int64(ready), InFlight: int64(len(q.leased)), Dead: int64(len(q.dead)),
		}
		if len(q.waiting) > 0 {
			st.HeadDue = q.waiting[0].Due
		}
	})
	return st, err
}

// page shows the messages of a list behind the cursor, which is time and place.
func page[T any](ctx context.Context, q *Queue, l *list, cursor string, limit int, show func(*message) T) (shown []T, next string, err error) {
	var ns int64
	var place uint64
	if n, _ := fmt.Sscanf(cursor, "%d.%d", &ns, &place); n != 2 && cursor != "" {
		return nil, "", backend.Invalid("cursor", cursor, "one that came with a page")
	}
	err = q.locked(ctx, func() {
		rest := *l
		if cursor != "" {
			rest = rest[rest.find(time.Unix(0, ns), place+1):]
		}
		for _, m := range rest[:min(limit, len(rest))] {
			shown = append(shown, show(m))
			next = fmt.Sprintf("%d.%d", m.at.UnixNano(), m.place)
		}
		if len(shown) == len(rest) {
			next = ""
		}
	})
	return shown, next, err
}

func (q *Queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	return page(ctx, q, &q.waiting, cursor, limit, func(m *message) backend.Pending {
		return backend.Pending{ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due, Attempts: m.attempts}
	})
}

func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return page(ctx, q, &q.dead, cursor, limit, func(m *message) backend.DeadLetter {
		return backend.DeadLetter{
			ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers), Due: m.Due,
			Attempts: m.attempts, Reason: m.reason, Died: m.at,
		}
	})
}

func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return each(ctx, q, ids, func(id string) error {
		return q.among(&q.dead, id, func(m *message) {
			m.attempts, m.Due = 0, q.now
			q.put(m, &q.waiting, q.now, q.number())
		})
	})
}

func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return each(ctx, q, ids, func(id string) error { return q.among(&q.dead, id, q.remove) })
}

func (q *Queue) Purge(ctx context.Context) (removed int64, err error) {
	err = q.locked(ctx, func() {
		removed = int64(len(q.byID))
		q.waiting, q.leased, q.dead = nil, nil, nil
		clear(q.byID)
	})
	return removed, err
}
