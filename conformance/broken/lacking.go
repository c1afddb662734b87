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
		Name: "purges, and says that it cannot", Rule: "features",
		lacks: []backend.Feature{backend.Purging},
		wrap:  func(q *queue) backend.Queue { return &secretPurger{q} },
	},
	{
		Name: "refuses all ids with one error", Rule: "features",
		lacks: []backend.Feature{backend.Rescheduling},
		wrap:  func(q *queue) backend.Queue { return &terse{q} },
	},
	{Name: "cannot count, and does not declare it", Rule: "features", wrap: func(q *queue) backend.Queue { return &countless{q} }},
}

type secretPurger struct{ *queue }

func (q *secretPurger) Purge(ctx context.Context) (int64, error) {
	_, _ = q.Queue.Purge(ctx)
	return backend.Unsupported{}.Purge(ctx)
}

type terse struct{ *queue }

func (*terse) Reschedule(context.Context, []backend.Move) []error {
	return []error{backend.ErrUnsupported}
}

type countless struct{ *queue }

func (*countless) Stats(ctx context.Context) (backend.Stats, error) {
	return backend.Unsupported{}.Stats(ctx)
}
