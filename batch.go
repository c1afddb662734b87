package delayq

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// MaxBatch is the largest number of messages, ids or dead letters in one call.
const MaxBatch = 10_000

// BatchError holds the outcome of each message of a batch when some failed.
type BatchError struct {
	// Errs has one entry for each message, in order; nil where it succeeded.
	Errs []error
}

func (e *BatchError) Error() string {
	failed := e.Unwrap()
	if len(failed) == 0 {
		return "no message failed"
	}
	first := slices.IndexFunc(e.Errs, func(err error) bool { return err != nil })
	return fmt.Sprintf("%d of %d messages failed; the first is Errs[%d]: %v", len(failed), len(e.Errs), first, e.Errs[first])
}

// Unwrap returns the errors of the messages that failed.
func (e *BatchError) Unwrap() []error {
	if e == nil {
		return nil
	}
	var failed []error
	for _, err := range e.Errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// batchError returns a BatchError when one of errs is an error.
func batchError(errs []error) error {
	if cmp.Or(errs...) == nil {
		return nil
	}
	return &BatchError{Errs: errs}
}

func (q *queue) AckBatch(ctx context.Context, ds []*Delivery) error {
	return q.settleBatch(ctx, telemetry.Ack, ds, nil, func(ls []backend.Lease) []error { return q.store.Ack(ctx, ls) })
}

func (q *queue) NackBatch(ctx context.Context, ds []*Delivery, delay time.Duration) error {
	return q.giveBack(ctx, telemetry.Nack, ds, backend.Return{Delay: delay}, valid.Delay(delay, q.traits))
}

func (q *queue) ReleaseBatch(ctx context.Context, ds []*Delivery) error {
	return q.giveBack(ctx, telemetry.Release, ds, backend.Return{Untouched: true}, nil)
}

// giveBack returns all deliveries in the same way.
func (q *queue) giveBack(ctx context.Context, op string, ds []*Delivery, how backend.Return, invalid error) error {
	return q.settleBatch(ctx, op, ds, invalid, func(ls []backend.Lease) []error {
		rs := make([]backend.Return, len(ls))
		for i, l := range ls {
			rs[i] = how
			rs[i].Lease = l
		}
		return q.store.Nack(ctx, rs)
	})
}

func (q *queue) DeadLetterBatch(ctx context.Context, ds []*Delivery, reason string) error {
	reason = valid.Reason(reason)
	return q.settleBatch(ctx, telemetry.Dead, ds, nil, func(ls []backend.Lease) []error {
		bs := make([]backend.DeadLetterRequest, len(ls))
		for i, l := range ls {
			bs[i] = backend.DeadLetterRequest{Lease: l, Reason: reason}
		}
		return q.deadLetters(ctx, bs)
	})
}

// settleBatch has one call settle the deliveries that are not settled yet.
func (q *queue) settleBatch(
	ctx context.Context, op string, ds []*Delivery, invalid error, call func([]backend.Lease) []error,
) error {
	if err := cmp.Or(q.validDeliveries(ctx, ds), invalid); err != nil || len(ds) == 0 {
		return q.fail(op, "", err)
	}
	began := q.telemetry.Start()
	errs := lease.Settle(ctx, leases(ds), call)
	err := batchError(errs)
	q.telemetry.Settled(ctx, op, succeeded(len(ds), errs), began, err)
	return q.fail(op, "", err)
}

// succeeded returns for how many of n messages a call has succeeded.
func succeeded(n int, errs []error) int {
	for _, err := range errs {
		if err != nil {
			n--
		}
	}
	return n
}

func (q *queue) ExtendBatch(ctx context.Context, ds []*Delivery, length time.Duration) error {
	if err := cmp.Or(q.validDeliveries(ctx, ds), valid.Lease("lease", length)); err != nil || len(ds) == 0 {
		return q.fail(telemetry.Extend, "", err)
	}
	return q.fail(telemetry.Extend, "", batchError(q.extend(ctx, ds, length)))
}

// extend makes leases end that long from now and returns an outcome for each delivery.
func (q *queue) extend(ctx context.Context, ds []*Delivery, length time.Duration) []error {
	began := q.telemetry.Start()
	errs := lease.Extend(ctx, q.store, leases(ds), length, q.clock.Now())
	q.telemetry.Operation(ctx, telemetry.Extend, began, cmp.Or(errs...))
	return errs
}

func leases(ds []*Delivery) []*lease.Lease {
	ls := make([]*lease.Lease, len(ds))
	for i, d := range ds {
		ls[i] = &d.lease
	}
	return ls
}

// validBatch checks a call on n messages. A call on none does not reach the store, so the closed
// queue is reported here.
func (q *queue) validBatch(ctx context.Context, n int) error {
	if err := cmp.Or(valid.Context(ctx), valid.Within("batch size", n, 0, MaxBatch)); err != nil {
		return err
	}
	if n == 0 && q.loops.Closed() {
		return ErrClosed
	}
	return nil
}

func (q *queue) validDeliveries(ctx context.Context, ds []*Delivery) error {
	if err := q.validBatch(ctx, len(ds)); err != nil {
		return err
	}
	for _, d := range ds {
		if d == nil || d.q != q {
			return backend.Invalid("delivery", valid.Described("nil or of another queue"), "deliveries that this queue handed out")
		}
	}
	return nil
}
