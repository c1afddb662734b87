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
	{
		Name: "declares that it cannot count scheduled messages, and returns 0 for them", Rule: "stats-known",
		lacks: []backend.Feature{backend.CountingScheduled},
		breaks: func(q *queue) {
			q.onStats(func(s *backend.Stats) { *s = backend.Stats{Ready: s.Ready, InFlight: s.InFlight, Dead: s.Dead} })
		},
	},
	{
		Name: "counts dead letters as ready, among unknown counts", Rule: "stats-known",
		lacks: []backend.Feature{backend.CountingScheduled},
		breaks: func(q *queue) {
			q.onStats(func(s *backend.Stats) {
				known := backend.Stats{Scheduled: backend.Unknown, Ready: s.Ready + s.Dead, InFlight: s.InFlight, OldestReady: backend.Unknown}
				for i := range known.Due {
					known.Due[i] = backend.Unknown
				}
				*s = known
			})
		},
	},
	{Name: "cannot count, and does not declare it", Rule: "features", breaks: func(q *queue) { q.stats = backend.Unsupported{}.Stats }},
}
