package queue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// fetch claims for all who wait until Close.
func (q *Queue) fetch() {
	for q.somebodyWaits() {
		if limit, lease := q.wanted(); limit > 0 {
			q.fetchOnce(limit, lease)
		}
	}
	q.deliver(received{err: backend.ErrClosed})
}

func (q *Queue) fetchOnce(limit int, lease time.Duration) {
	asked := q.clock.Now()
	c, err := q.Claim(context.Background(), limit, lease, rand.Text()) // what it brings is given back after a Close
	switch {
	case err != nil && q.fetching.Err() != nil: // the end of the loop says why
	case err != nil:
		q.deliver(received{err: err})
	case len(c.Deliveries) > 0 && q.clock.Since(asked) < lease:
		q.deliverAll(c.Deliveries, lease)
	case len(c.Deliveries) > 0: // the reply took longer than the leases lasted
		q.giveBack(c.Deliveries)
	case q.Clock != nil:
		q.sleep(c, asked)
	default: // the server read its clock on the way; better late than early
		q.sleep(c, q.clock.Now())
	}
}

// somebodyWaits waits for that; false when the handle is closed.
func (q *Queue) somebodyWaits() bool {
	for {
		if q.fetching.Err() != nil {
			return false
		}
		q.mu.Lock()
		n := len(q.waiting)
		q.mu.Unlock()
		if n > 0 {
			return true
		}
		q.idle()
	}
}

// wanted is what those ask for who ask for the first one's lease.
func (q *Queue) wanted() (limit int, lease time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.soonest = time.Time{}
	for _, w := range q.waiting {
		if limit == 0 {
			lease = w.lease
		}
		if w.lease == lease {
			limit += w.limit
		}
	}
	return min(limit, script.ChunkMessages), lease
}

// deliver gives all who wait the same answer.
func (q *Queue) deliver(r received) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		w.got <- r
	}
	q.waiting = nil
}

// deliverAll shares messages out, first come, first served. What nobody waits for any more goes back
// untouched.
func (q *Queue) deliverAll(ds []backend.Delivery, lease time.Duration) {
	q.mu.Lock()
	rest := q.waiting[:0]
	for _, w := range q.waiting {
		if w.lease != lease || len(ds) == 0 {
			rest = append(rest, w)
			continue
		}
		n := min(w.limit, len(ds))
		w.got <- received{ds: ds[:n:n]}
		ds = ds[n:]
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	q.mu.Unlock()
	q.giveBack(ds)
}

// giveBackWithin bounds the return of what nobody waits for. If it fails, the lease ends in its time.
const giveBackWithin = 2 * time.Second

func (q *Queue) giveBack(ds []backend.Delivery) {
	if len(ds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.fetching), giveBackWithin)
	defer cancel()
	rs := make([]backend.Return, len(ds))
	for i, d := range ds {
		rs[i] = backend.Return{Lease: d.Lease(), Untouched: true}
	}
	for _, err := range q.Messages.Nack(ctx, rs) {
		if err != nil {
			q.log.Warn("delayq: giving a message back failed; it returns when its lease ends", "err", err)
		}
	}
}

// sleep waits until something may be due: the next event of the claim, unless it is for a trigger to
// tell that is to come, a wake-up, or, since wake-ups can be lost, the hub's interval. at is the time here that was c.Now
// in the store.
func (q *Queue) sleep(c Claim, at time.Time) { q.sleepUntil(c, at, nil) }

// sleepUntil is sleep that ends with an arrival too.
func (q *Queue) sleepUntil(c Claim, at time.Time, arrived <-chan struct{}) {
	left := q.hub.interval()
	if next := c.Next.Sub(c.Now); !c.Next.IsZero() && (next <= 0 || !q.Triggered) {
		left = min(left, next)
	}
	for {
		t := q.clock.NewTimer(max(left-q.clock.Since(at), 0))
		if q.clock.Since(at) >= left || !q.dream(t, arrived) {
			t.Stop()
			return
		}
		t.Stop()
		left = min(left, q.toldDue().Sub(c.Now))
	}
}

// dream waits for the timer, an arrival or a nudge, and reports whether it was a nudge.
func (q *Queue) dream(t clockwork.Timer, arrived <-chan struct{}) (nudged bool) {
	select {
	case <-q.nudged:
		return true
	case <-t.Chan():
	case <-arrived:
	case <-q.fetching.Done():
	}
	return false
}

// nudge tells the fetcher that a message is due then; the zero time says to look at once.
func (q *Queue) nudge(due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.soonest.IsZero() || due.Before(q.soonest) {
		q.soonest = due
	}
	if due.IsZero() {
		q.soonest = lookNow
	}
	signal(q.nudged)
}

// lookNow is before every due time, and is not the zero time.
var lookNow = time.Unix(0, 1)

func (q *Queue) toldDue() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.soonest
}
