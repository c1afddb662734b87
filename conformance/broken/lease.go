package broken

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

var leaseFaults = []Fault{
	{Name: "lets a lease end early, so that two workers hold a message", Rule: "lease-excludes", breaks: func(q *queue) {
		q.leasesFor(func(lease time.Duration) time.Duration { return lease - lease/10 })
	}},
	{Name: "accepts a stale ack", Rule: "stale-ack", breaks: func(q *queue) { q.onAck(q.lastToken()) }},
	{Name: "accepts a stale nack", Rule: "stale-nack", breaks: func(q *queue) {
		last := q.lastToken()
		q.onNack(func(r *backend.Return) { last(&r.Lease) })
	}},
	{Name: "accepts a stale extension", Rule: "stale-extend", breaks: func(q *queue) { q.onExtend(q.lastToken()) }},
	{Name: "accepts a stale dead-letter request", Rule: "stale-dead", breaks: func(q *queue) {
		last := q.lastToken()
		q.onDead(func(r *backend.DeadLetterRequest) { last(&r.Lease) })
	}},
	{Name: "accepts a second ack", Rule: "settle-once", breaks: func(q *queue) { q.ack = q.ackAlways }},
	{Name: "does not extend a lease, and returns its new end", Rule: "extend-holds", breaks: ignoreExtend},
	{Name: "never shortens a lease", Rule: "extend-shortens", breaks: func(q *queue) {
		q.extendsFor(func(lease time.Duration) time.Duration { return lease + day })
	}},
	{Name: "never ends a lease", Rule: "lease-ends", breaks: func(q *queue) {
		q.leasesFor(func(lease time.Duration) time.Duration { return lease + year })
	}},
	{Name: "does not count the attempt of a worker that died", Rule: "attempt-counts-crashes", breaks: countWhenNacked},
	{Name: "does not count a message given back at once", Rule: "attempt-counts-nacks", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.Untouched = r.Delay == 0 })
	}},
	{Name: "counts a message given back untouched", Rule: "untouched-is-not-counted", breaks: nackUntouched},
	{Name: "puts a message given back untouched at the end", Rule: "order-after-lease", breaks: nackUntouched},
	{Name: "puts many messages whose leases ended in no order", Rule: "batch-of-ended-leases", breaks: handOutLastOfHundred},
	{Name: "gives back no more than a thousand ended leases at a time", Rule: "stats-after-many-leases", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) {
			if more := s.Ready - 1000; more > 0 {
				s.Ready, s.InFlight = 1000, s.InFlight+more
			}
		})
	}},
	{Name: "notices the end of a lease only in a new Receive", Rule: "lease-end-wakes", breaks: missLeaseEnds},
	{Name: "keeps a stuck handler's lease no longer than a tick", Rule: "stuck-handler", breaks: ignoreExtend},
}

// lastToken returns a function that makes the lease of an earlier delivery that of the last one.
func (q *queue) lastToken() func(*backend.Lease) {
	last := make(map[string]backend.Token)
	q.onDelivery(func(d *backend.Delivery) { last[d.ID] = d.Token })
	return func(l *backend.Lease) { l.Token = last[l.ID] }
}

func (q *queue) ackAlways(ctx context.Context, ls []backend.Lease) []error {
	q.Queue.Ack(ctx, ls)
	return nil
}

func ignoreExtend(q *queue) {
	q.extend = func(_ context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
		ends := make([]time.Time, len(ls))
		for i := range ends {
			ends[i] = q.clock().Now().Add(lease)
		}
		return ends, nil
	}
}

// countWhenNacked counts attempts in nacks, which a crashed worker does not make.
func countWhenNacked(q *queue) {
	given, missed := make(map[string]bool), make(map[string]int)
	q.onDelivery(func(d *backend.Delivery) {
		if given[d.ID] {
			missed[d.ID]++
		}
		given[d.ID] = true
		d.Attempt -= missed[d.ID]
	})
	q.onNack(func(r *backend.Return) { given[r.ID] = false })
}

func nackUntouched(q *queue) { q.onNack(func(r *backend.Return) { r.Untouched = false }) }

// missLeaseEnds has a Receive that waits miss that a lease ends.
func missLeaseEnds(q *queue) {
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		if s, err := q.Queue.Stats(ctx); err != nil || s.InFlight == 0 {
			return q.Queue.Receive(ctx, limit, lease)
		}
		if ds, err := q.now(limit, lease); err == nil {
			return ds, nil
		}
		return forever(ctx)
	}
}

// handOutLastOfHundred hands out the last of a hundred messages where there are more.
func handOutLastOfHundred(q *queue) {
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
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
}
