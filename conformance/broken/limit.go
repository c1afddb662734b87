package broken

import (
	"time"

	"github.com/delayq/delayq/backend"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func anHourAtMost(d time.Duration) time.Duration { return min(d, time.Hour) }

var limitFaults = []Fault{
	{Name: "ends leases of more than an hour after an hour", Rule: "limits-of-leases", breaks: func(q *queue) { q.leasesFor(anHourAtMost) }},
	{Name: "extends leases by an hour at most", Rule: "limits-of-leases", breaks: func(q *queue) { q.extendsFor(anHourAtMost) }},
	{Name: "ends windows of more than 30 days after 30 days", Rule: "limits-of-windows", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.UniqueFor = min(m.UniqueFor, 30*day) })
	}},
	{Name: "delays a push by ten years at most", Rule: "limits-of-delays", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.Delay = min(m.Delay, 10*year) })
	}},
	{Name: "delays a message that is given back by a day at most", Rule: "limits-of-delays", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.Delay = min(r.Delay, day) })
	}},
	{Name: "reschedules by a year at most", Rule: "limits-of-delays", breaks: func(q *queue) {
		q.onMove(func(m *backend.Move) { m.Delay = min(m.Delay, year) })
	}},
	{Name: "takes a due time that has passed as now", Rule: "limits-of-due-times", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) {
			if now := q.clock().Now(); !m.Due.IsZero() && m.Due.Before(now) {
				m.Due = now
			}
		})
	}},
	{Name: "returns the time of death as a dead letter's due time", Rule: "limits-of-due-times", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.Due = l.Died })
	}},
}
