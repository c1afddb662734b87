package broken

import (
	"context"

	"github.com/delayq/delayq/backend"
)

var lackingFaults = []Fault{
	{
		Name: "declares that it cannot cancel, and cancels", Rule: "features",
		lacks: []backend.Feature{backend.Cancelling},
	},
	{
		Name: "purges, and returns that it cannot", Rule: "features", lacks: []backend.Feature{backend.Purging},
		breaks: func(q *queue) {
			q.purge = func(ctx context.Context) (int64, error) {
				_, _ = q.Queue.Purge(ctx)
				return backend.Unsupported{}.Purge(ctx)
			}
		},
	},
	{
		Name: "rejects all ids with one error", Rule: "features", lacks: []backend.Feature{backend.Rescheduling},
		breaks: func(q *queue) {
			q.reschedule = func(context.Context, []backend.Move) []error { return []error{backend.ErrUnsupported} }
		},
	},
	{Name: "cannot count, and does not declare it", Rule: "features", breaks: func(q *queue) { q.stats = backend.Unsupported{}.Stats }},
}
