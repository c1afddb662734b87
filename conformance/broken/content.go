package broken

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/delayq/delayq/backend"
)

var contentFaults = []Fault{
	{Name: "drops a header", Rule: "content-intact", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) {
			m.Headers = maps.Clone(m.Headers)
			for k := range m.Headers {
				delete(m.Headers, k)
				return
			}
		})
	}},
	{Name: "hands out empty headers where a message has none", Rule: "content-intact", breaks: func(q *queue) {
		q.onDelivery(func(d *backend.Delivery) {
			if d.Headers == nil {
				d.Headers = make(map[string]string)
			}
		})
	}},
	{Name: "truncates bodies at NUL", Rule: "content-intact", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.Body, _, _ = bytes.Cut(m.Body, []byte{0}) })
	}},
	{Name: "repairs invalid UTF-8", Rule: "content-intact", breaks: func(q *queue) {
		q.onPush(func(m *backend.Message) { m.Body = bytes.ToValidUTF8(m.Body, []byte("\ufffd")) })
	}},
	{Name: "makes ids upper case", Rule: "odd-ids", breaks: func(q *queue) {
		q.onDelivery(func(d *backend.Delivery) { d.ID = strings.ToUpper(d.ID) })
	}},
	{Name: "returns another id than it hands out", Rule: "ids", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms)
			for i := range ms {
				ms[i].ID += "+"
			}
			return errs
		}
	}},
	{Name: "shares the memory of a delivery with its store", Rule: "content-after-retry", breaks: func(q *queue) { q.shareBodies(0) }},
	{Name: "keeps the pusher's memory", Rule: "owns-its-memory", breaks: func(q *queue) {
		bodies := make(map[string][]byte)
		q.onPush(func(m *backend.Message) { bodies[m.ID] = m.Body })
		q.onDelivery(func(d *backend.Delivery) { d.Body = slices.Clone(bodies[d.ID]) })
	}},
	{Name: "redrives without the body", Rule: "redrive", breaks: func(q *queue) {
		redriven := make(map[string]bool)
		q.redrive = func(ctx context.Context, ids []string) []error {
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, id := range ids {
				redriven[id] = true
			}
			return q.Queue.Redrive(ctx, ids)
		}
		q.onDelivery(func(d *backend.Delivery) {
			if redriven[d.ID] {
				d.Body = nil
			}
		})
	}},
	{Name: "cuts reasons at 1 KiB", Rule: "content-everywhere", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.Reason = l.Reason[:min(len(l.Reason), 1<<10)] })
	}},
	{Name: "cuts the values of headers at 32 KiB where it lists dead letters", Rule: "content-everywhere", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) {
			for k, v := range l.Headers {
				l.Headers[k] = v[:min(len(v), 32<<10)]
			}
		})
	}},
	{Name: "shares the memory of bodies of more than 1 MiB", Rule: "content-everywhere", breaks: func(q *queue) { q.shareBodies(1 << 20) }},
	{Name: "shares the memory of the bodies that Get shows", Rule: "content-everywhere", breaks: func(q *queue) {
		bodies := make(map[string][]byte)
		q.onGet(func(m *backend.MessageInfo) {
			if bodies[m.ID] == nil {
				bodies[m.ID] = m.Body
			}
			m.Body = bodies[m.ID]
		})
	}},
	{Name: "lists dead letters without their reasons", Rule: "dead-list", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.Reason = "" })
	}},
}

// shareBodies hands out the same bytes each time, where there are more than that.
func (q *queue) shareBodies(more int) {
	bodies := make(map[string][]byte)
	q.onDelivery(func(d *backend.Delivery) {
		if len(d.Body) <= more {
			return
		}
		if bodies[d.ID] == nil {
			bodies[d.ID] = d.Body
		}
		d.Body = bodies[d.ID]
	})
}
