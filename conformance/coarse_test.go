package conformance_test

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// The coarse backend is memory with the limits of a store on a server, which it declares: times in
// milliseconds, and ended leases and other clients' pushes noticed a sweep later. The suite must
// accept it.
type coarse struct {
	backend.Backend
	open *sync.Map // handles
}

const (
	coarseGrain = time.Millisecond
	coarseSweep = 100 * time.Millisecond
	coarsePhase = 37 * time.Millisecond // of the sweeps, so that none is on a full second
)

func newCoarse(context.Context) (backend.Backend, func(), error) {
	return coarse{memory.New(), new(sync.Map)}, nil, nil
}

// attachCoarse makes a second client of the same store, which stays open when the client closes.
func attachCoarse(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
	return coarse{unclosed{b.(coarse).Backend}, new(sync.Map)}, nil, nil
}

type unclosed struct{ backend.Backend }

func (unclosed) Close() error { return nil }

func coarseLeftovers(ctx context.Context, b backend.Backend) ([]string, error) {
	return memoryLeftovers(ctx, b.(coarse).Backend)
}

func (b coarse) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Name, t.Resolution, t.Sweep = "coarse", coarseGrain, coarseSweep
	t.Lacks = t.Lacks.With(backend.Getting) // no handle knows which leases of others have ended
	return t
}

func (b coarse) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	handle := &coarseQueue{
		Queue: q, clock: o.Clock, changed: make(chan struct{}), closed: make(chan struct{}),
		ends: make(map[backend.Token]time.Time),
	}
	b.open.Store(handle, nil)
	return handle, nil
}

func (b coarse) Close() error {
	b.open.Range(func(q, _ any) bool {
		_ = q.(*coarseQueue).Close()
		return true
	})
	return b.Backend.Close()
}

// coarseQueue is one client's handle. In the store under it a lease lasts until the sweep after its
// end; the handle knows the true end.
type coarseQueue struct {
	backend.Queue
	clock  clockwork.Clock
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	changed chan struct{} // closed at a change that this client makes
	ends    map[backend.Token]time.Time
}

func roundedUp(t time.Time, grain time.Duration) time.Time {
	if down := t.Truncate(grain); down.Before(t) {
		return down.Add(grain)
	}
	return t
}

// sweepFrom returns the first sweep at or after t.
func sweepFrom(t time.Time) time.Time {
	return roundedUp(t.Add(-coarsePhase), coarseSweep).Add(coarsePhase)
}

// due returns a due time on the grain.
func (q *coarseQueue) due(at time.Time, delay time.Duration) time.Time {
	if at.IsZero() {
		at = q.clock.Now().Add(delay)
	}
	return roundedUp(at, coarseGrain)
}

// wake wakes the Receives of this client.
func (q *coarseQueue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *coarseQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	defer q.wake()
	coarsened := make([]backend.Message, len(ms))
	for i, m := range ms {
		m.Due, m.Delay = q.due(m.Due, m.Delay), 0
		coarsened[i] = m
	}
	return q.Queue.Schedule(ctx, coarsened)
}

func (q *coarseQueue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	defer q.wake()
	coarsened := make([]backend.Move, len(ms))
	for i, m := range ms {
		coarsened[i] = backend.Move{ID: m.ID, Due: q.due(m.Due, m.Delay)}
	}
	return q.Queue.Reschedule(ctx, coarsened)
}

func (q *coarseQueue) PauseAll(ctx context.Context, p backend.Pause) error {
	defer q.wake()
	if p != (backend.Pause{}) {
		p = backend.Pause{Until: q.due(p.Until, p.For)}
	}
	return q.Queue.PauseAll(ctx, p)
}

func (q *coarseQueue) ResumeAll(ctx context.Context) error {
	defer q.wake()
	return q.Queue.ResumeAll(ctx)
}

func (q *coarseQueue) Redrive(ctx context.Context, ids []string) []error {
	defer q.wake()
	return q.Queue.Redrive(ctx, ids)
}

// Receive takes ready messages, or looks again when it may have missed some.
func (q *coarseQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	for {
		q.mu.Lock()
		changed := q.changed
		q.mu.Unlock()
		s, err := q.Stats(ctx)
		if err != nil {
			return nil, err
		}
		if s.Paused {
			s.Ready, s.HeadDue = 0, s.PausedUntil
		}
		if s.Ready > 0 {
			if ds := q.take(limit, lease); ds != nil {
				return ds, nil
			}
			continue
		}
		if err := q.sleep(ctx, changed, s.HeadDue); err != nil {
			return nil, err
		}
	}
}

// take returns nil when another worker was faster.
func (q *coarseQueue) take(limit int, lease time.Duration) []backend.Delivery {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	end, kept := q.lease(lease)
	ds, err := q.Queue.Receive(ctx, limit, kept)
	if err != nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range ds {
		ds[i].Until, q.ends[ds[i].Token] = end, end
	}
	return ds
}

// lease returns the end of a lease, and how long the store keeps it.
func (q *coarseQueue) lease(lease time.Duration) (end time.Time, kept time.Duration) {
	now := q.clock.Now()
	end = roundedUp(now.Add(lease), coarseGrain)
	return end, sweepFrom(end).Sub(now)
}

// sleep returns at the head's due time as it was known, at a change that this client makes, or at
// the next sweep.
func (q *coarseQueue) sleep(ctx context.Context, changed <-chan struct{}, head time.Time) error {
	now := q.clock.Now()
	until := sweepFrom(now.Add(1))
	if !head.IsZero() && head.Before(until) {
		until = head
	}
	timer := q.clock.NewTimer(until.Sub(now))
	defer timer.Stop()
	if !q.clock.Now().Before(until) { // the clock has jumped meanwhile
		return nil
	}
	select {
	case <-timer.Chan():
	case <-changed:
	case <-q.closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// held runs a call under a lease unless the lease has ended.
func (q *coarseQueue) held(l backend.Lease, do func() []error) error {
	q.mu.Lock()
	end, known := q.ends[l.Token]
	q.mu.Unlock()
	if known && !q.clock.Now().Before(end) {
		return backend.ErrLeaseLost
	}
	if errs := do(); errs != nil {
		return errs[0]
	}
	return nil
}

func (q *coarseQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	errs := make([]error, len(ls))
	for i, l := range ls {
		errs[i] = q.held(l, func() []error { return q.Queue.Ack(ctx, ls[i:i+1]) })
	}
	return errs
}

func (q *coarseQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	defer q.wake()
	errs := make([]error, len(rs))
	for i, r := range rs {
		if !r.Untouched {
			r.Delay = max(0, q.due(time.Time{}, r.Delay).Sub(q.clock.Now()))
		}
		errs[i] = q.held(r.Lease, func() []error { return q.Queue.Nack(ctx, []backend.Return{r}) })
	}
	return errs
}

func (q *coarseQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends, errs := make([]time.Time, len(ls)), make([]error, len(ls))
	for i, l := range ls {
		end, kept := q.lease(lease)
		errs[i] = q.held(l, func() []error {
			_, errs := q.Queue.Extend(ctx, ls[i:i+1], kept)
			return errs
		})
		if errs[i] == nil {
			q.mu.Lock()
			ends[i], q.ends[l.Token] = end, end
			q.mu.Unlock()
		}
	}
	return ends, errs
}

func (q *coarseQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	errs := make([]error, len(bs))
	for i, b := range bs {
		errs[i] = q.held(b.Lease, func() []error { return q.Queue.Dead(ctx, bs[i:i+1]) })
	}
	return errs
}

func (q *coarseQueue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	return backend.Unsupported{}.Get(ctx, ids)
}

func (q *coarseQueue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return q.Queue.Close()
}
