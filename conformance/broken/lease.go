package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

var leaseFaults = []Fault{
	{Name: "lets a lease end early, so that two hold a message", Rule: "lease-excludes", wrap: func(q *queue) backend.Queue { return &shortLease{q} }},
	{Name: "accepts a stale ack", Rule: "stale-ack", wrap: func(q *queue) backend.Queue { return newUnfenced(q, "ack") }},
	{Name: "accepts a stale nack", Rule: "stale-nack", wrap: func(q *queue) backend.Queue { return newUnfenced(q, "nack") }},
	{Name: "accepts a stale extension", Rule: "stale-extend", wrap: func(q *queue) backend.Queue { return newUnfenced(q, "extend") }},
	{Name: "accepts a stale burial", Rule: "stale-dead", wrap: func(q *queue) backend.Queue { return newUnfenced(q, "dead") }},
	{Name: "accepts a second ack", Rule: "settle-once", wrap: func(q *queue) backend.Queue { return &lenient{q} }},
	{Name: "does not extend a lease, and says it did", Rule: "extend-holds", wrap: func(q *queue) backend.Queue { return &unextended{q} }},
	{Name: "never shortens a lease", Rule: "extend-shortens", wrap: func(q *queue) backend.Queue { return &stretching{q} }},
	{Name: "never ends a lease", Rule: "lease-ends", wrap: func(q *queue) backend.Queue { return &endless{q} }},
	{Name: "does not count the attempt of a worker that died", Rule: "attempt-counts-crashes", wrap: func(q *queue) backend.Queue {
		return &uncounted{queue: q, given: map[string]bool{}, missed: map[string]int{}}
	}},
	{Name: "does not count a message given back at once", Rule: "attempt-counts-nacks", wrap: func(q *queue) backend.Queue { return &uncountedNack{q} }},
	{Name: "counts a message given back untouched", Rule: "untouched-is-not-counted", wrap: func(q *queue) backend.Queue { return &counted{q} }},
	{Name: "puts a message given back untouched at the end", Rule: "order-after-lease", wrap: func(q *queue) backend.Queue { return &counted{q} }},
	{Name: "puts many messages whose leases ended in no order", Rule: "batch-of-ended-leases", wrap: func(q *queue) backend.Queue { return &crowded{q} }},
	{Name: "gives back no more than a thousand ended leases at a time", Rule: "stats-after-many-leases", wrap: func(q *queue) backend.Queue { return &thousand{q} }},
	{Name: "notices the end of a lease only when asked anew", Rule: "lease-end-wakes", wrap: func(q *queue) backend.Queue { return &sluggish{q} }},
	{Name: "keeps a stuck handler's lease no longer than a tick", Rule: "stuck-handler", wrap: func(q *queue) backend.Queue { return &unextended{q} }},
}

type shortLease struct{ *queue }

func (q *shortLease) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease-lease/10, func(d *backend.Delivery) { d.Until = d.Until.Add(lease / 10) })
}

// unfenced settles, for one operation, by the id alone: whoever holds the message now.
type unfenced struct {
	*queue
	op   string
	mu   sync.Mutex
	last map[string]backend.Token
}

func newUnfenced(q *queue, op string) *unfenced {
	return &unfenced{queue: q, op: op, last: map[string]backend.Token{}}
}

func (q *unfenced) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) { q.last[d.ID] = d.Token })
}

func (q *unfenced) lease(op string, l backend.Lease) backend.Lease {
	if op == q.op {
		q.mu.Lock()
		defer q.mu.Unlock()
		l.Token = q.last[l.ID]
	}
	return l
}

func (q *unfenced) leases(op string, ls []backend.Lease) []backend.Lease {
	out := make([]backend.Lease, len(ls))
	for i, l := range ls {
		out[i] = q.lease(op, l)
	}
	return out
}

func (q *unfenced) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.Queue.Ack(ctx, q.leases("ack", ls))
}

func (q *unfenced) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return q.Queue.Extend(ctx, q.leases("extend", ls), lease)
}

func (q *unfenced) Nack(ctx context.Context, rs []backend.Return) []error {
	out := make([]backend.Return, len(rs))
	for i, r := range rs {
		r.Lease = q.lease("nack", r.Lease)
		out[i] = r
	}
	return q.Queue.Nack(ctx, out)
}

func (q *unfenced) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	out := make([]backend.DeadLetterRequest, len(bs))
	for i, b := range bs {
		b.Lease = q.lease("dead", b.Lease)
		out[i] = b
	}
	return q.Queue.Dead(ctx, out)
}

type lenient struct{ *queue }

func (q *lenient) Ack(ctx context.Context, ls []backend.Lease) []error {
	q.Queue.Ack(ctx, ls)
	return nil
}

type unextended struct{ *queue }

func (q *unextended) Extend(_ context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	for i := range ends {
		ends[i] = q.clock().Now().Add(lease)
	}
	return ends, nil
}

type stretching struct{ *queue }

func (q *stretching) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return q.Queue.Extend(ctx, ls, lease+24*time.Hour)
}

type endless struct{ *queue }

func (q *endless) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease+10000*time.Hour, func(d *backend.Delivery) { d.Until = d.Until.Add(-10000 * time.Hour) })
}

// uncounted counts attempts when a message is settled, which a dead worker does not do.
type uncounted struct {
	*queue
	mu     sync.Mutex
	given  map[string]bool
	missed map[string]int
}

func (q *uncounted) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range ds {
		id := ds[i].ID
		if q.given[id] {
			q.missed[id]++
		}
		q.given[id] = true
		ds[i].Attempt -= q.missed[id]
	}
	return ds, err
}

func (q *uncounted) Nack(ctx context.Context, rs []backend.Return) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range rs {
		q.given[r.ID] = false
	}
	return q.Queue.Nack(ctx, rs)
}

type uncountedNack struct{ *queue }

func (q *uncountedNack) Nack(ctx context.Context, rs []backend.Return) []error {
	out := make([]backend.Return, len(rs))
	for i, r := range rs {
		r.Untouched = r.Delay == 0
		out[i] = r
	}
	return q.Queue.Nack(ctx, out)
}

type counted struct{ *queue }

func (q *counted) Nack(ctx context.Context, rs []backend.Return) []error {
	out := make([]backend.Return, len(rs))
	for i, r := range rs {
		r.Untouched = false
		out[i] = r
	}
	return q.Queue.Nack(ctx, out)
}

// sluggish does not hear of leases that end while it waits.
type sluggish struct{ *queue }

func (q *sluggish) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if s, err := q.Stats(ctx); err != nil || s.InFlight == 0 {
		return q.Queue.Receive(ctx, limit, lease)
	}
	if ds, err := q.now(limit, lease); err == nil {
		return ds, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// crowded hands out the last of a hundred where there are more.
type crowded struct{ *queue }

func (q *crowded) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	const many = 100
	s, err := q.Queue.Stats(ctx)
	if err != nil || s.Ready <= many || limit > 1 {
		return q.Queue.Receive(ctx, limit, lease)
	}
	ds, err := q.Queue.Receive(ctx, many, lease)
	if err != nil {
		return nil, err
	}
	last := len(ds) - 1
	rs := make([]backend.Return, last)
	for i := range rs {
		rs[i] = backend.Return{Lease: ds[i].Lease(), Untouched: true}
	}
	return ds[last:], errors.Join(q.Queue.Nack(ctx, rs)...)
}

// thousand counts the others as in flight.
type thousand struct{ *queue }

func (q *thousand) Stats(ctx context.Context) (backend.Stats, error) {
	const most = 1000
	s, err := q.Queue.Stats(ctx)
	if more := s.Ready - most; more > 0 {
		s.Ready, s.InFlight = most, s.InFlight+more
	}
	return s, err
}
