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
	return slices.DeleteFunc(slices.Clone(e.Errs), func(err error) bool { return err == nil })
}

// batchError returns a BatchError when one of errs is an error.
func batchError(errs []error) error {
	if cmp.Or(errs...) == nil {
		return nil
	}
	return &BatchError{Errs: errs}
}

func (q *queue) AckBatch(ctx context.Context, ds []*Delivery) error {
	ack := func(ls []*lease.Lease) []error { return q.settle.AckAll(ctx, ls) }
	return q.each(ctx, telemetry.Ack, ds, nil, ack)
}

func (q *queue) NackBatch(ctx context.Context, ds []*Delivery, delay time.Duration) error {
	nack := func(ls []*lease.Lease) []error { return q.settle.ReturnAll(ctx, ls, backend.Return{Delay: delay}) }
	return q.each(ctx, telemetry.Nack, ds, valid.Delay(delay, q.traits), nack)
}

func (q *queue) ReleaseBatch(ctx context.Context, ds []*Delivery) error {
	release := func(ls []*lease.Lease) []error { return q.settle.ReturnAll(ctx, ls, backend.Return{Untouched: true}) }
	return q.each(ctx, telemetry.Release, ds, nil, release)
}

func (q *queue) DeadLetterBatch(ctx context.Context, ds []*Delivery, reason string) error {
	dead := func(ls []*lease.Lease) []error { return q.settle.DeadAll(ctx, ls, valid.Reason(reason)) }
	return q.each(ctx, telemetry.Dead, ds, nil, dead)
}

func (q *queue) ExtendBatch(ctx context.Context, ds []*Delivery, length time.Duration) error {
	extend := func(ls []*lease.Lease) []error { return q.settle.Extend(ctx, ls, length) }
	return q.each(ctx, telemetry.Extend, ds, valid.Lease("lease", length), extend)
}

// each makes one call on deliveries.
func (q *queue) each(ctx context.Context, op string, ds []*Delivery, invalid error, call func([]*lease.Lease) []error) error {
	err := cmp.Or(q.validBatch(ctx, len(ds)), q.validDeliveries(ds), invalid)
	if err != nil || len(ds) == 0 {
		return q.fail(op, "", err)
	}
	ls := make([]*lease.Lease, len(ds))
	for i, d := range ds {
		ls[i] = &d.lease
	}
	return q.fail(op, "", batchError(call(ls)))
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

func (q *queue) validDeliveries(ds []*Delivery) error {
	for _, d := range ds {
		if d == nil || d.q != q {
			return backend.Invalid("delivery", valid.Described("nil or of another queue"), "deliveries that this queue handed out")
		}
	}
	return nil
}
