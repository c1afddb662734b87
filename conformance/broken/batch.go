package broken

import (
	"context"
	"slices"

	"github.com/delayq/delayq/backend"
)

var batchFaults = []Fault{
	{Name: "drops messages beyond 4,096 in a batch", Rule: "batches", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms[:min(len(ms), 4096)])
			if errs == nil {
				return nil
			}
			return append(errs, make([]error, len(ms)-len(errs))...)
		}
	}},
	{Name: "hands out batches of more than 16 out of order", Rule: "batches", breaks: func(q *queue) {
		q.onReceived(func(ds []backend.Delivery) {
			if len(ds) > 17 {
				ds[16], ds[17] = ds[17], ds[16]
			}
		})
	}},
	{Name: "stores batches of more than 64 out of order", Rule: "batches", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := make([]error, len(ms))
			for end := len(ms); end > 0; end -= 64 {
				from := max(0, end-64)
				copy(errs[from:end], q.Queue.Schedule(ctx, ms[from:end]))
			}
			return errs
		}
	}},
	{Name: "acknowledges one lease twice in a batch", Rule: "batch-twice", breaks: func(q *queue) {
		q.ack = func(ctx context.Context, ls []backend.Lease) []error { return once(ctx, ls, q.Queue.Ack) }
	}},
	{Name: "cancels one id twice in a batch", Rule: "batch-twice", breaks: func(q *queue) {
		q.cancel = func(ctx context.Context, ids []string) []error { return once(ctx, ids, q.Queue.Cancel) }
	}},
	{Name: "puts messages beyond 100 ended leases out of order", Rule: "batch-of-ended-leases", breaks: func(q *queue) {
		q.onReceived(func(ds []backend.Delivery) {
			if len(ds) > 100 && ds[0].Attempt > 1 {
				slices.Reverse(ds[100:])
			}
		})
	}},
}

// once gives the items that are in a batch twice one outcome.
func once[T comparable](ctx context.Context, batch []T, do func(context.Context, []T) []error) []error {
	var some []T
	for _, v := range batch {
		if !slices.Contains(some, v) {
			some = append(some, v)
		}
	}
	outcomes := do(ctx, some)
	if outcomes == nil || len(some) == len(batch) {
		return outcomes
	}
	errs := make([]error, len(batch))
	for i, v := range batch {
		errs[i] = outcomes[slices.Index(some, v)]
	}
	return errs
}
