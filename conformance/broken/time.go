package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

var timeFaults = []Fault{
	{Name: "hands out 1 ms early", Rule: "never-early", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { advance(m, time.Millisecond) }}
	}},
	{Name: "rounds due times down to the millisecond", Rule: "rounds-up", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.Due = m.Due.Truncate(time.Millisecond) }}
	}},
	{Name: "rounds due times down to the second", Rule: "never-early-under-load", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.Delay = m.Delay.Truncate(time.Second) }}
	}},
	{Name: "takes a due time in the future as now", Rule: "due-at", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) {
			if !m.Due.IsZero() {
				m.Due = time.Unix(0, 0)
			}
		}}
	}},
	{Name: "forgets the high bits of a long delay", Rule: "longest-delay", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.Delay %= 1 << 32 * time.Millisecond / 65536 }}
	}},
	{Name: "ignores the delay of a nack", Rule: "nack-delay", wrap: func(q *queue) backend.Queue { return &hasty{q} }},
	{Name: "reschedules to the old due time", Rule: "reschedule", wrap: func(q *queue) backend.Queue { return &immovable{q} }},
	{Name: "orders ties by id backwards", Rule: "order-of-ties", wrap: func(q *queue) backend.Queue { return &reversed{queue: q} }},
	{Name: "orders by push alone", Rule: "order", wrap: func(q *queue) backend.Queue { return &byPush{queue: q} }},
}

// shifted changes messages on their way in.
type shifted struct {
	*queue
	shift func(*backend.Message)
}

func (q *shifted) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.Queue.Schedule(ctx, changed(ms, q.shift))
}

func changed(ms []backend.Message, change func(*backend.Message)) []backend.Message {
	out := make([]backend.Message, len(ms))
	for i, m := range ms {
		change(&m)
		out[i] = m
	}
	return out
}

func advance(m *backend.Message, d time.Duration) {
	if m.Due.IsZero() {
		m.Delay = max(0, m.Delay-d)
	} else {
		m.Due = m.Due.Add(-d)
	}
}

type hasty struct{ *queue }

func (q *hasty) Nack(ctx context.Context, rs []backend.Return) []error {
	now := make([]backend.Return, len(rs))
	for i, r := range rs {
		r.Delay = 0
		now[i] = r
	}
	return q.Queue.Nack(ctx, now)
}

// immovable answers as if it had moved the message.
type immovable struct{ *queue }

func (q *immovable) Reschedule(ctx context.Context, ms []backend.Move) []error {
	far := make([]backend.Move, len(ms))
	for i, m := range ms {
		far[i] = backend.Move{ID: m.ID, Delay: 100 * time.Hour}
	}
	return q.Queue.Reschedule(ctx, far)
}

// reversed pushes each batch backwards.
type reversed struct{ *queue }

func (q *reversed) Schedule(ctx context.Context, ms []backend.Message) []error {
	n := len(ms)
	back := make([]backend.Message, n)
	for i, m := range ms {
		back[n-1-i] = m
	}
	errs := q.Queue.Schedule(ctx, back)
	for i := range len(errs) / 2 {
		errs[i], errs[n-1-i] = errs[n-1-i], errs[i]
	}
	return errs
}

// byPush waits for the due time of the first message pushed, then hands out by push.
type byPush struct {
	*queue
	latest time.Time
}

func (q *byPush) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.Queue.Schedule(ctx, changed(ms, func(m *backend.Message) {
		if m.Due.Before(q.latest) {
			m.Due = q.latest
		}
		q.latest = m.Due
	}))
}
