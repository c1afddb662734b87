package delayq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

// A settlement is what is known of the calls that settle one delivery. The store decides which of several at once succeeds; its
// reply to the others, that the lease is lost, may come first, so these wait to know why.
type settlement struct {
	mu    sync.Mutex
	calls int           // under way
	done  bool          // one has succeeded
	lost  bool          // the store said so
	quiet chan struct{} // closed when no call is under way; nil while nobody waits
}

// begin counts a call; false when the delivery is settled and no call is needed.
func (s *settlement) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	s.calls++
	return true
}

// end notes what the store replied to a call.
func (s *settlement) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.done = s.done || err == nil
	s.lost = s.lost || errors.Is(err, ErrLeaseLost)
	if s.quiet != nil && (s.calls == 0 || s.done) {
		close(s.quiet)
		s.quiet = nil
	}
}

// outcome returns the error of a call that has ended, and tells a lease that was lost from one that another call settled. It waits for
// these, but no longer than ctx.
func (s *settlement) outcome(ctx context.Context, err error) error {
	if !errors.Is(err, ErrLeaseLost) {
		return err
	}
	if quiet := s.others(); quiet != nil {
		select {
		case <-quiet:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return ErrSettled
	}
	return err
}

// others returns what is closed when no other call is under way; nil when that is so.
func (s *settlement) others() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || s.calls == 0 {
		return nil
	}
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	return s.quiet
}

func (s *settlement) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done || s.lost || s.calls > 0
}

func (s *settlement) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func (q *queue) AckBatch(ctx context.Context, ds []*Delivery) error {
	return q.settleBatch(ctx, telemetry.Ack, ds, nil, func(some []*Delivery) []error {
		ls := make([]backend.Lease, len(some))
		for i, d := range some {
			ls[i] = d.lease
		}
		return q.store.Ack(ctx, ls)
	})
}

func (q *queue) NackBatch(ctx context.Context, ds []*Delivery, delay time.Duration) error {
	return q.settleBatch(ctx, telemetry.Nack, ds, validDelay(delay, q.traits), func(some []*Delivery) []error {
		return q.store.Nack(ctx, returns(some, backend.Return{Delay: delay}))
	})
}

func (q *queue) ReleaseBatch(ctx context.Context, ds []*Delivery) error {
	return q.settleBatch(ctx, telemetry.Release, ds, nil, func(some []*Delivery) []error {
		return q.store.Nack(ctx, returns(some, backend.Return{Untouched: true}))
	})
}

func (q *queue) DeadBatch(ctx context.Context, ds []*Delivery, reason string) error {
	reason = cut(reason, backend.MaxReason)
	return q.settleBatch(ctx, telemetry.Dead, ds, nil, func(some []*Delivery) []error {
		bs := make([]backend.Burial, len(some))
		for i, d := range some {
			bs[i] = backend.Burial{Lease: d.lease, Reason: reason}
		}
		return q.store.Dead(ctx, bs)
	})
}

func returns(ds []*Delivery, like backend.Return) []backend.Return {
	rs := make([]backend.Return, len(ds))
	for i, d := range ds {
		rs[i] = like
		rs[i].Lease = d.lease
	}
	return rs
}

// settleBatch has a call settle the deliveries that are not settled yet.
func (q *queue) settleBatch(ctx context.Context, op string, ds []*Delivery, invalid error, call func([]*Delivery) []error) error {
	if err := firstError(q.validBatch(ctx, len(ds)), q.validDeliveries(ds), invalid); err != nil || len(ds) == 0 {
		return q.fail(op, "", err)
	}
	began := q.telemetry.Start()
	errs := make([]error, len(ds))
	some, at := make([]*Delivery, 0, len(ds)), make([]int, 0, len(ds))
	for i, d := range ds {
		if errs[i] = ErrSettled; d.settle.begin() {
			errs[i] = nil
			some, at = append(some, d), append(at, i)
		}
	}
	if len(some) > 0 {
		for i, err := range call(some) {
			errs[at[i]] = err
		}
	}
	for _, i := range at {
		ds[i].settle.end(errs[i])
	}
	for _, i := range at {
		errs[i] = ds[i].settle.outcome(ctx, errs[i])
	}
	err := batchError(errs)
	q.telemetry.Settled(ctx, op, len(ds)-failures(errs), began, err)
	return q.fail(op, "", err)
}

func failures(errs []error) (n int) {
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}

func (q *queue) ExtendBatch(ctx context.Context, ds []*Delivery, lease time.Duration) error {
	if err := firstError(q.validBatch(ctx, len(ds)), q.validDeliveries(ds), validLease("lease", lease)); err != nil || len(ds) == 0 {
		return q.fail(telemetry.Extend, "", err)
	}
	return q.fail(telemetry.Extend, "", batchError(q.extend(ctx, ds, lease)))
}

// extend makes leases end that long from now and returns an outcome for each delivery.
func (q *queue) extend(ctx context.Context, ds []*Delivery, lease time.Duration) []error {
	if slices.ContainsFunc(ds, func(d *Delivery) bool { return d.consumed }) {
		lease = max(lease, q.lease) // a shorter one could end before the next renewal, under its handler
	}
	began := q.telemetry.Start()
	kept := q.clock.Now().Add(lease)
	ls := make([]backend.Lease, len(ds))
	for i, d := range ds {
		ls[i] = d.lease
		d.asked.Store(kept.UnixNano()) // from here on a renewal leaves it alone
	}
	ends, errs := q.store.Extend(ctx, ls, lease)
	outcomes := make([]error, len(ds))
	copy(outcomes, errs)
	for i, d := range ds {
		switch err := outcomes[i]; {
		case err == nil:
			d.keep(ends[i], kept)
		case errors.Is(err, ErrLeaseLost) && d.settle.settled():
			outcomes[i] = ErrSettled
			fallthrough
		default:
			d.asked.Store(0)
		}
	}
	q.telemetry.Operation(ctx, telemetry.Extend, began, firstError(outcomes...))
	return outcomes
}
