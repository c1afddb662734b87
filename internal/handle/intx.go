package handle

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Changes are the methods of a queue that may run inside a transaction of the caller. They run in
// the caller's goroutine and under its context, and are never tried again.
type Changes interface {
	Schedule(ctx context.Context, ms []backend.Message) []error
	Ack(ctx context.Context, ls []backend.Lease) []error
	Cancel(ctx context.Context, ids []string) []error
	Reschedule(ctx context.Context, ms []backend.Move) []error
}

// InTx is as in backend.Queue.
func (q *Queue) InTx(tx any) (backend.Queue, error) {
	if err := q.open(context.Background()); err != nil {
		return nil, err
	}
	if q.Within == nil {
		return nil, backend.ErrUnsupported
	}
	changes, err := q.Within(tx)
	if err != nil {
		return nil, err
	}
	return &view{q: q, changes: changes}, nil
}

// A view is a queue inside a transaction.
type view struct {
	backend.Unsupported
	q       *Queue
	changes Changes
}

func (v *view) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := v.q.whileOpen(ctx, len(ms), func() []error { return v.changes.Schedule(ctx, ms) })
	v.q.count.pushed(len(ms), errs)
	return errs
}

func (v *view) Ack(ctx context.Context, ls []backend.Lease) []error {
	errs := v.q.whileOpen(ctx, len(ls), func() []error { return v.changes.Ack(ctx, ls) })
	v.q.count.acked(len(ls), errs)
	return errs
}

func (v *view) Cancel(ctx context.Context, ids []string) []error {
	return v.q.whileOpen(ctx, len(ids), func() []error { return v.changes.Cancel(ctx, ids) })
}

func (v *view) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return v.q.whileOpen(ctx, len(ms), func() []error { return v.changes.Reschedule(ctx, ms) })
}

// Close does nothing: the transaction is the caller's.
func (*view) Close() error { return nil }
