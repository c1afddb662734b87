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
	lacks := backend.Lacking(backend.Durability, backend.Transactions) // messages end with the process
	return backend.Traits{Name: "list", Lacks: lacks, Calls: backend.NoRoundTrip}
}

func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := cmp.Or(context.Cause(b.open), ctx.Err()); err != nil {
		return nil, err
	}
	fresh := &store{messages: map[string]*message{}, unique: map[string]time.Time{}, resumes: backend.EarliestDue, changed: make(chan struct{})}
	s, _ := b.stores.LoadOrStore(name, fresh)
	q := &Queue{store: s.(*store), clock: cmp.Or(o.Clock, clockwork.NewRealClock())}
	q.open, q.close = context.WithCancelCause(b.open)
	return q, nil
}

func (b *Backend) Queues(ctx context.Context) ([]string, error) {
	names := func(yield func(string) bool) { b.stores.Range(func(name, _ any) bool { return yield(name.(string)) }) }
	return slices.Sorted(names), cmp.Or(context.Cause(b.open), ctx.Err())
}
func (b *Backend) Close() error { b.close(backend.ErrClosed); return nil }

// store is what all handles on one name share.
type store struct {
	mu       sync.Mutex
	messages map[string]*message  // by id
	unique   map[string]time.Time // by id, the end of UniqueFor
	resumes  time.Time            // when the pause ends; after backend.LatestDue for one without an end
	last     uint64               // number of a change: a place or a token
	activity backend.Activity
	changed  chan struct{} // closed at the next change
}

// The states of a message here; one that is due stays scheduled.
const scheduled, inFlight, dead = backend.StateScheduled, backend.StateInFlight, backend.StateDead

type message struct {
	backend.MessageInfo
	token backend.Token
	at    int64  // nanoseconds since 1970 when it becomes due, or died
	place uint64 // among messages of the same time
}

// after returns the messages of a state that are behind a place, in order.
func (s *store) after(at int64, place uint64, state backend.State) (ms []*message) {
	order := func(a, b *message) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.place, b.place)) }
	for _, m := range s.messages {
		if m.State == state && order(m, &message{at: at, place: place}) > 0 {
			ms = append(ms, m)
		}
	}
	slices.SortFunc(ms, order)
	return ms
}

// Queue is a handle, safe for concurrent use. Its methods are as in backend.Queue.
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

// locked ends leases and windows, and runs do, unless the handle is closed or ctx has ended.
func (q *Queue) locked(ctx context.Context, do func()) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := cmp.Or(context.Cause(q.open), ctx.Err()); err != nil {
		return err
	}
	q.now = q.clock.Now()
	maps.DeleteFunc(q.unique, func(_ string, end time.Time) bool { return !end.After(q.now) })
	for _, m := range q.messages {
		if m.State == inFlight && !m.LeaseUntil.After(q.now) {
			m.wait(m.Due)
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

// change changes a message that is in the state. One in flight must have the token.
func (q *Queue) change(from backend.State, l backend.Lease, do func(*message)) error {
	m := q.messages[l.ID]
	switch {
	case from == inFlight && (m == nil || m.State != inFlight || m.token != l.Token):
		return backend.ErrLeaseLost
	case from == scheduled && m != nil && m.State == inFlight:
		return backend.ErrInFlight
	case m == nil || m.State != from:
		return backend.ErrNotFound
	}
	do(m)
	return nil
}

// settle changes a message in flight. One that was replaced meanwhile waits, whatever the worker says.
func (q *Queue) settle(l backend.Lease, do func(*message)) error {
	return q.change(inFlight, l, func(m *message) {
		if m.Attempts == 0 {
			m.wait(m.Due)
			return
		}
		do(m)
	})
}

func (m *message) wait(at time.Time) {
	m.State, m.LeaseUntil, m.Reason, m.Died = scheduled, time.Time{}, "", time.Time{}
	m.Due, m.at = at, at.UnixNano()
}

func (q *Queue) delete(m *message) { delete(q.messages, m.ID) }

// info copies what is known of an id.
func (q *Queue) info(id string) (backend.MessageInfo, error) {
	info := backend.MessageInfo{ID: id, State: backend.StateDone}
	if m := q.messages[id]; m != nil {
		info = m.MessageInfo
		info.Body, info.Headers = slices.Clone(m.Body), maps.Clone(m.Headers)
		if len(info.Headers) == 0 {
			info.Headers = nil // where a push or a nack had an empty map
		}
	}
	if info.State == scheduled && !info.Due.After(q.now) {
		info.State = backend.StateReady
	}
	if info.UniqueUntil = q.unique[id]; info.State == backend.StateDone && info.UniqueUntil.IsZero() {
		return backend.MessageInfo{}, backend.ErrNotFound
	}
	return info, nil
}

func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.each(ctx, len(ms), func(i int) error {
		m := &ms[i]
		old, err := q.info(m.ID)
		switch waits := err == nil && (old.State == scheduled || old.State == backend.StateReady); {
		case m.Replace && old.State == inFlight && !m.AfterInFlight:
			return backend.ErrInFlight
		case m.Replace && old.State == inFlight:
			if old.Attempts > 0 {
				old.Headers = nil // MaxWait counts from now
			}
		case err == nil && !(m.Replace && waits):
			return backend.Duplicate(old.State)
		case err != nil:
			q.unique[m.ID] = q.now.Add(m.UniqueFor) // already over if UniqueFor is 0
		}
		bounded := m.Bounded(old.Headers, q.now)
		m = &bounded
		fresh := &message{MessageInfo: backend.MessageInfo{ID: m.ID, Body: slices.Clone(m.Body), Headers: maps.Clone(m.Headers)}, place: q.last}
		fresh.wait(m.DueAt(q.now))
		if old.State == inFlight { // it waits when the lease is over
			fresh.State, fresh.LeaseUntil, fresh.token = inFlight, old.LeaseUntil, q.messages[m.ID].token
		}
		q.messages[m.ID] = fresh
		q.activity.Pushed++
		return nil
	})
}

func (q *Queue) Receive(ctx context.Context, limit int, lease time.Duration) (ds []backend.Delivery, err error) {
	for {
		var next int64 // when a message may be handed out or a lease ends
		var changed chan struct{}
		err = q.locked(ctx, func() {
			next, changed = q.now.Add(time.Hour).UnixNano(), q.changed
			for _, m := range q.after(0, 0, scheduled) {
				if at := max(m.at, q.resumes.UnixNano()); at > q.now.UnixNano() || len(ds) == limit {
					next = min(next, at)
					break
				}
				q.last++
				m.State, m.Attempts, m.LeaseUntil, m.token = inFlight, m.Attempts+1, q.now.Add(lease), backend.Token{Lo: q.last}
				if m.Attempts == 1 {
					q.activity.Lateness.Add(q.now.Sub(m.Due))
				}
				info, _ := q.info(m.ID)
				ds = append(ds, backend.Delivery{ID: m.ID, Body: info.Body, Headers: info.Headers, Due: m.Due, Attempt: m.Attempts, Token: m.token, Until: m.LeaseUntil})
			}
			for _, m := range q.after(0, 0, inFlight) {
				next = min(next, m.LeaseUntil.UnixNano())
			}
		})
		if err != nil || len(ds) > 0 {
			return ds, err
		}
		backend.SleepUntil(q.clock, time.Unix(0, next), changed, ctx.Done(), q.open.Done())
	}
}

func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.each(ctx, len(ls), func(i int) error {
		err := q.settle(ls[i], q.delete)
		if err == nil {
			q.activity.Acked++
		}
		return err
	})
}

func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.each(ctx, len(rs), func(i int) error {
		return q.settle(rs[i].Lease, func(m *message) {
			if rs[i].NewHeaders {
				m.Headers = maps.Clone(rs[i].Headers)
			}
			due := q.now.Add(rs[i].Delay)
			if rs[i].Untouched {
				m.Attempts, due = m.Attempts-1, m.Due
			}
			m.wait(due)
		})
	})
}

func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	return ends, q.each(ctx, len(ls), func(i int) error {
		return q.change(inFlight, ls[i], func(m *message) { ends[i] = q.now.Add(lease); m.LeaseUntil = ends[i] })
	})
}

func (q *Queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.each(ctx, len(bs), func(i int) error {
		return q.settle(bs[i].Lease, func(m *message) {
			m.State, m.LeaseUntil, m.Reason, m.Died = dead, time.Time{}, bs[i].Reason, q.now
			m.at, m.place = q.now.UnixNano(), q.last
		})
	})
}

func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error { return q.change(scheduled, backend.Lease{ID: ids[i]}, q.delete) })
}

func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.each(ctx, len(ms), func(i int) error {
		return q.change(scheduled, backend.Lease{ID: ms[i].ID}, func(m *message) { m.wait(ms[i].DueAt(q.now)) })
	})
}

func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error {
		return q.change(dead, backend.Lease{ID: ids[i]}, func(m *message) { m.Attempts, m.place = 0, q.last; m.wait(q.now) })
	})
}

func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int) error { return q.change(dead, backend.Lease{ID: ids[i]}, q.delete) })
}

func (q *Queue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	err = q.locked(ctx, func() {
		letters := q.after(0, 0, dead)
		for i, m := range letters {
			if r.MaxCount > 0 && i < len(letters)-r.MaxCount || r.MaxAge > 0 && q.now.Sub(m.Died) >= r.MaxAge {
				q.delete(m)
				removed++
			}
		}
	})
	return removed, false, err
}

func (q *Queue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	return infos, q.each(ctx, len(ids), func(i int) (err error) { infos[i], err = q.info(ids[i]); return err })
}

func (q *Queue) Stats(ctx context.Context) (st backend.Stats, err error) {
	err = q.locked(ctx, func() {
		waiting := q.after(0, 0, scheduled)
		st.Dead = int64(len(q.after(0, 0, dead)))
		st.Activity = q.activity
		st.InFlight = int64(len(q.messages)-len(waiting)) - st.Dead
		for _, m := range waiting {
			st.CountWaiting(m.Due, q.now)
		}
		if st.Paused = q.resumes.After(q.now); st.Paused && !q.resumes.After(backend.LatestDue) {
			st.PausedUntil = q.resumes
		}
	})
	return st, err
}

// page returns messages of a state behind the cursor, which is the place of the last one before.
func (q *Queue) page(ctx context.Context, state backend.State, cursor string, limit int) (page []backend.MessageInfo, next string, err error) {
	var last message
	if n, _ := fmt.Sscanf(cursor, "%d.%d", &last.at, &last.place); n != 2 && cursor != "" {
		return nil, "", backend.Invalid("cursor", cursor, "one that came with a page")
	}
	err = q.locked(ctx, func() {
		rest := q.after(last.at, last.place, state)
		for _, m := range rest[:min(limit, len(rest))] {
			info, _ := q.info(m.ID)
			info.UniqueUntil = time.Time{} // Get alone shows it
			page, next = append(page, info), fmt.Sprintf("%d.%d", m.at, m.place)
		}
		if len(rest) <= limit {
			next = ""
		}
	})
	return page, next, err
}

func (q *Queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	return q.page(ctx, scheduled, cursor, limit)
}

func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return q.page(ctx, dead, cursor, limit)
}

func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

func (q *Queue) Purge(ctx context.Context) (removed int64, err error) {
	err = q.locked(ctx, func() {
		removed = int64(len(q.messages))
		clear(q.messages)
		clear(q.unique)
	})
	return removed, err
}

func (q *Queue) PauseAll(ctx context.Context, p backend.Pause) error {
	end := func(int) error { q.resumes = cmp.Or(p.EndAt(q.now), backend.LatestDue.Add(1)); return nil }
	return cmp.Or(q.each(ctx, 1, end)...)
}

func (q *Queue) ResumeAll(ctx context.Context) error {
	return q.PauseAll(ctx, backend.Pause{Until: backend.EarliestDue})
}
