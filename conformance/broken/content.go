package broken

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

var contentFaults = []Fault{
	{Name: "drops a header", Rule: "content-intact", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) {
			m.Headers = maps.Clone(m.Headers)
			for k := range m.Headers {
				delete(m.Headers, k)
				return
			}
		}}
	}},
	{Name: "truncates bodies at NUL", Rule: "content-intact", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.Body, _, _ = bytes.Cut(m.Body, []byte{0}) }}
	}},
	{Name: "repairs invalid UTF-8", Rule: "content-intact", wrap: func(q *queue) backend.Queue {
		return &shifted{q, func(m *backend.Message) { m.Body = bytes.ToValidUTF8(m.Body, []byte("\ufffd")) }}
	}},
	{Name: "makes ids upper case", Rule: "odd-ids", wrap: func(q *queue) backend.Queue {
		return &renamed{q, strings.ToUpper}
	}},
	{Name: "tells another id than it hands out", Rule: "ids", wrap: func(q *queue) backend.Queue { return &liar{q} }},
	{Name: "shares the memory of a delivery with its store", Rule: "content-after-retry", wrap: func(q *queue) backend.Queue { return &shared{queue: q, bodies: map[string][]byte{}} }},
	{Name: "keeps the pusher's memory", Rule: "owns-its-memory", wrap: func(q *queue) backend.Queue { return &borrower{queue: q, bodies: map[string][]byte{}} }},
	{Name: "redrives without the body", Rule: "redrive", wrap: func(q *queue) backend.Queue { return &forgetful{queue: q, redriven: map[string]bool{}} }},
	{Name: "cuts reasons at 1 KiB", Rule: "content-everywhere", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Reason = l.Reason[:min(len(l.Reason), 1<<10)] }}
	}},
	{Name: "cuts the values of headers at 32 KiB where it lists dead letters", Rule: "content-everywhere", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) {
			for k, v := range l.Headers {
				l.Headers[k] = v[:min(len(v), 32<<10)]
			}
		}}
	}},
	{Name: "shares the memory of bodies of more than 1 MiB", Rule: "content-everywhere", wrap: func(q *queue) backend.Queue {
		return &sharedIfLarge{queue: q, bodies: map[string][]byte{}}
	}},
	{Name: "lists dead letters without their reasons", Rule: "dead-list", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Reason = "" }}
	}},
}

// renamed changes ids on their way out.
type renamed struct {
	*queue
	rename func(string) string
}

func (q *renamed) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) { d.ID = q.rename(d.ID) })
}

// liar writes another id into what was pushed.
type liar struct{ *queue }

func (q *liar) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := q.Queue.Schedule(ctx, ms)
	for i := range ms {
		ms[i].ID += "+"
	}
	return errs
}

// handed changes deliveries on their way out.
func (q *queue) handed(ctx context.Context, limit int, lease time.Duration, change func(*backend.Delivery)) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	for i := range ds {
		change(&ds[i])
	}
	return ds, err
}

// shared hands out the same bytes each time.
type shared struct {
	*queue
	bodies map[string][]byte
}

func (q *shared) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		if q.bodies[d.ID] == nil {
			q.bodies[d.ID] = d.Body
		}
		d.Body = q.bodies[d.ID]
	})
}

// sharedIfLarge shows the same bytes each time, when they are many.
type sharedIfLarge struct {
	*queue
	bodies map[string][]byte
}

func (q *sharedIfLarge) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		if len(d.Body) > 1<<20 {
			if q.bodies[d.ID] == nil {
				q.bodies[d.ID] = d.Body
			}
			d.Body = q.bodies[d.ID]
		}
	})
}

// borrower looks at the pusher's memory when it hands out.
type borrower struct {
	*queue
	bodies map[string][]byte
}

func (q *borrower) Schedule(ctx context.Context, ms []backend.Message) []error {
	for _, m := range ms {
		q.bodies[m.ID] = m.Body
	}
	return q.Queue.Schedule(ctx, ms)
}

func (q *borrower) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) { d.Body = slices.Clone(q.bodies[d.ID]) })
}

type forgetful struct {
	*queue
	redriven map[string]bool
}

func (q *forgetful) Redrive(ctx context.Context, ids []string) []error {
	for _, id := range ids {
		q.redriven[id] = true
	}
	return q.Queue.Redrive(ctx, ids)
}

func (q *forgetful) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		if q.redriven[d.ID] {
			d.Body = nil
		}
	})
}

// lister changes dead letters in a listing.
type lister struct {
	*queue
	change func(*backend.DeadLetter)
}

func (q *lister) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	ls, next, err := q.Queue.ListDead(ctx, cursor, limit)
	for i := range ls {
		q.change(&ls[i])
	}
	return ls, next, err
}
