package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

var uniqueFaults = []Fault{
	{Name: "looks for a window only in pushes that have one", Rule: "unique-window", breaks: func(q *queue) {
		ends := make(map[string]time.Time)
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			q.mu.Lock()
			defer q.mu.Unlock()
			errs := make([]error, len(ms))
			for i, m := range ms {
				now, window := q.clock().Now(), m.UniqueFor
				if m.UniqueFor = 0; window > 0 && ends[m.ID].After(now) {
					errs[i] = backend.ErrDuplicate
					continue
				}
				if out := q.Queue.Schedule(ctx, []backend.Message{m}); out != nil {
					errs[i] = out[0]
				} else if window > 0 {
					ends[m.ID] = now.Add(window)
				}
			}
			return errs
		}
	}},
	{Name: "forgets an id with its message", Rule: "unique-done", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.UniqueFor = 0 })
	}},
	{Name: "keeps ids taken from the due time on", Rule: "unique-ended", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) {
			if m.UniqueFor > 0 {
				m.UniqueFor += m.Delay
			}
		})
	}},
	{Name: "frees ids a little early", Rule: "unique-ended", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.UniqueFor -= m.UniqueFor / 1000 })
	}},
	{Name: "looks for an id before it stores the message", Rule: "unique-race", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			if s, err := q.Queue.Stats(ctx); err != nil || s != (backend.Stats{Activity: s.Activity}) {
				return q.Queue.Schedule(ctx, ms)
			}
			<-time.After(time.Millisecond)
			return without(q.Queue.Schedule(ctx, ms), backend.ErrDuplicate) // it has been accepted already
		}
	}},
}
