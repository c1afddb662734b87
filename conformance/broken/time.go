package broken

import (
	"context"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

var timeFaults = []Fault{
	{Name: "hands out 1 ms early", Rule: "never-early", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) {
			if m.Due.IsZero() {
				m.Delay = max(0, m.Delay-time.Millisecond)
			} else {
				m.Due = m.Due.Add(-time.Millisecond)
			}
		})
	}},
	{Name: "rounds due times down to the millisecond", Rule: "rounds-up", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.Due = m.Due.Truncate(time.Millisecond) })
	}},
	{Name: "rounds due times down to the second", Rule: "never-early-under-load", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.Delay = m.Delay.Truncate(time.Second) })
	}},
	{Name: "takes a due time in the future as now", Rule: "due-at", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) {
			if !m.Due.IsZero() {
				m.Due = time.Unix(0, 0)
			}
		})
	}},
	{Name: "forgets the high bits of a long delay", Rule: "longest-delay", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.Delay %= 1 << 32 * time.Millisecond / 65536 })
	}},
	{Name: "ignores the delay of a nack", Rule: "nack-delay", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.Delay = 0 })
	}},
	{Name: "reschedules to the old due time", Rule: "reschedule", breaks: func(q *queue) {
		q.onMove(func(m *backend.Move) { *m = backend.Move{ID: m.ID, Delay: 100 * time.Hour} })
	}},
	{Name: "counts the delay of a reschedule from the push", Rule: "reschedule-delay", breaks: func(q *queue) {
		pushed := make(map[string]time.Time)
		q.onPush(func(m *backend.Message) { pushed[m.ID] = q.clock().Now() })
		q.onMove(func(m *backend.Move) {
			if m.Due.IsZero() {
				m.Due, m.Delay = pushed[m.ID].Add(m.Delay), 0
			}
		})
	}},
	{Name: "orders ties by id backwards", Rule: "order-of-ties", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			ms = slices.Clone(ms)
			slices.Reverse(ms)
			errs := q.Queue.Schedule(ctx, ms)
			slices.Reverse(errs)
			return errs
		}
	}},
	{Name: "orders by push alone", Rule: "order", breaks: func(q *queue) {
		var latest time.Time
		q.onPush(func(m *backend.Message) {
			if m.Due.Before(latest) {
				m.Due = latest
			}
			latest = m.Due
		})
	}},
}
