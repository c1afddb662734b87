package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

const year = 365 * 24 * time.Hour

var limitFaults = []Fault{
	{Name: "ends leases of more than an hour after an hour", Rule: "limits-of-leases", wrap: func(q *queue) backend.Queue { return &cappedLease{q} }},
	{Name: "extends leases by an hour at most", Rule: "limits-of-leases", wrap: func(q *queue) backend.Queue { return &cappedExtension{q} }},
	{Name: "ends windows of more than 30 days after 30 days", Rule: "limits-of-windows", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.UniqueFor = min(m.UniqueFor, 30*24*time.Hour) }}
	}},
	{Name: "delays a push by ten years at most", Rule: "limits-of-delays", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.Delay = min(m.Delay, 10*year) }}
	}},
	{Name: "delays a message that is given back by a day at most", Rule: "limits-of-delays", wrap: func(q *queue) backend.Queue { return &cappedNack{q} }},
	{Name: "reschedules by a year at most", Rule: "limits-of-delays", wrap: func(q *queue) backend.Queue { return &cappedMove{q} }},
	{Name: "takes a due time that has passed as now", Rule: "limits-of-due-times", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) {
			if now := q.clock().Now(); !m.Due.IsZero() && m.Due.Before(now) {
				m.Due = now
			}
		}}
	}},
	{Name: "tells the time of death as a dead letter's due time", Rule: "limits-of-due-times", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Due = l.Died }}
	}},
}

type cappedLease struct{ *queue }

func (q *cappedLease) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, min(lease, time.Hour), func(d *backend.Delivery) { d.Until = d.Until.Add(max(0, lease-time.Hour)) })
}

type cappedExtension struct{ *queue }

func (q *cappedExtension) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return q.Queue.Extend(ctx, ls, min(lease, time.Hour))
}

type cappedNack struct{ *queue }

func (q *cappedNack) Nack(ctx context.Context, rs []backend.Return) []error {
	out := make([]backend.Return, len(rs))
	for i, r := range rs {
		r.Delay = min(r.Delay, 24*time.Hour)
		out[i] = r
	}
	return q.Queue.Nack(ctx, out)
}

type cappedMove struct{ *queue }

func (q *cappedMove) Reschedule(ctx context.Context, ms []backend.Move) []error {
	out := make([]backend.Move, len(ms))
	for i, m := range ms {
		m.Delay = min(m.Delay, year)
		out[i] = m
	}
	return q.Queue.Reschedule(ctx, out)
}
