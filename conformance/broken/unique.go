package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

var uniqueFaults = []Fault{
	{Name: "asks for windows only for pushes that have one", Rule: "unique-window", wrap: func(q *queue) backend.Queue {
		return &halfway{queue: q, ends: map[string]time.Time{}}
	}},
	{Name: "forgets an id with its message", Rule: "unique-done", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.UniqueFor = 0 }}
	}},
	{Name: "keeps ids taken from the due time on", Rule: "unique-ended", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) {
			if m.UniqueFor > 0 {
				m.UniqueFor += m.Delay
			}
		}}
	}},
	{Name: "frees ids a little early", Rule: "unique-ended", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.UniqueFor -= m.UniqueFor / 1000 }}
	}},
	{Name: "looks for an id before it stores the message", Rule: "unique-race", wrap: func(q *queue) backend.Queue { return &hurried{q} }},
}

// halfway keeps the windows itself.
type halfway struct {
	*queue
	mu   sync.Mutex
	ends map[string]time.Time
}

func (q *halfway) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := make([]error, len(ms))
	for i, m := range ms {
		now, window := q.clock().Now(), m.UniqueFor
		if m.UniqueFor = 0; window > 0 && q.ends[m.ID].After(now) {
			errs[i] = backend.ErrDuplicate
			continue
		}
		if out := q.Queue.Schedule(ctx, []backend.Message{m}); out != nil {
			errs[i] = out[0]
		} else if window > 0 {
			q.ends[m.ID] = now.Add(window)
		}
	}
	return errs
}

// hurried has said yes before it stores, and nobody is told of what it then finds.
type hurried struct{ *queue }

func (q *hurried) Schedule(ctx context.Context, ms []backend.Message) []error {
	if s, err := q.Stats(ctx); err != nil || s != (backend.Stats{}) {
		return q.Queue.Schedule(ctx, ms)
	}
	<-time.After(time.Millisecond)
	errs := q.Queue.Schedule(ctx, ms)
	for i, err := range errs {
		if errors.Is(err, backend.ErrDuplicate) {
			errs[i] = nil
		}
	}
	return errs
}
