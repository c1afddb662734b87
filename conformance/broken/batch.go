package broken

import (
	"context"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

var batchFaults = []Fault{
	{Name: "drops what lies beyond 4,096 in a batch", Rule: "batches", wrap: func(q *queue) backend.Queue { return &shortBatch{q} }},
	{Name: "hands out batches of more than 16 out of order", Rule: "batches", wrap: func(q *queue) backend.Queue { return &shuffler{q} }},
	{Name: "stores batches of more than 64 out of order", Rule: "batches", wrap: func(q *queue) backend.Queue { return &chunker{q} }},
	{Name: "acknowledges one lease twice in a batch", Rule: "batch-twice", wrap: func(q *queue) backend.Queue { return &doubleAck{q} }},
	{Name: "cancels one id twice in a batch", Rule: "batch-twice", wrap: func(q *queue) backend.Queue { return &doubleCancel{q} }},
	{Name: "puts what is beyond 100 ended leases out of order", Rule: "batch-of-ended-leases", wrap: func(q *queue) backend.Queue { return &slowSweeper{q} }},
}

type shortBatch struct{ *queue }

func (q *shortBatch) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := q.Queue.Schedule(ctx, ms[:min(len(ms), 4096)])
	if errs == nil {
		return nil
	}
	return append(errs, make([]error, len(ms)-len(errs))...)
}

type shuffler struct{ *queue }

func (q *shuffler) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if len(ds) > 17 {
		ds[16], ds[17] = ds[17], ds[16]
	}
	return ds, err
}

// chunker stores a large batch from its end, 64 at a time.
type chunker struct{ *queue }

func (q *chunker) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := make([]error, len(ms))
	for end := len(ms); end > 0; end -= 64 {
		from := max(0, end-64)
		copy(errs[from:end], q.Queue.Schedule(ctx, ms[from:end]))
	}
	return errs
}

type doubleAck struct{ *queue }

func (q *doubleAck) Ack(ctx context.Context, ls []backend.Lease) []error {
	return once(ls, func(some []backend.Lease) []error { return q.Queue.Ack(ctx, some) })
}

type doubleCancel struct{ *queue }

func (q *doubleCancel) Cancel(ctx context.Context, ids []string) []error {
	return once(ids, func(some []string) []error { return q.Queue.Cancel(ctx, some) })
}

// once does something to each of a batch, and gives those that are there twice one outcome.
func once[T comparable](batch []T, do func([]T) []error) []error {
	var some []T
	for _, v := range batch {
		if !slices.Contains(some, v) {
			some = append(some, v)
		}
	}
	if len(some) == len(batch) {
		return do(batch)
	}
	outcomes := do(some)
	errs := make([]error, len(batch))
	for i, v := range batch {
		if outcomes != nil {
			errs[i] = outcomes[slices.Index(some, v)]
		}
	}
	return errs
}

type slowSweeper struct{ *queue }

func (q *slowSweeper) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if len(ds) > 100 && ds[0].Attempt > 1 {
		slices.Reverse(ds[100:])
	}
	return ds, err
}
