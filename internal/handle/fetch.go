package handle

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// fetch claims for all Receives that wait, until Close.
func (q *Queue) fetch() {
	for q.awaitReceive() {
		if limit, lease := q.wanted(); limit > 0 {
			q.fetchOnce(limit, lease)
		}
	}
	q.deliver(received{err: backend.ErrClosed})
}

func (q *Queue) fetchOnce(limit int, lease time.Duration) {
	asked := q.clock.Now()
	// A claim has no deadline. Messages that it brings after a Close are given back.
	c, err := q.Claim(context.Background(), limit, lease)
	switch {
	case err != nil && q.fetching.Err() != nil: // the end of the loop returns ErrClosed
	case err != nil:
		q.deliver(received{err: err})
	case len(c.Deliveries) > 0 && q.clock.Since(asked) < lease:
		q.deliverAll(c.Deliveries, lease)
	case len(c.Deliveries) > 0: // the reply took longer than the leases lasted
		q.giveBack(c.Deliveries)
	default:
		q.sleep(c, nil)
	}
}

// awaitReceive waits until a Receive waits. It reports false when the handle is closed.
func (q *Queue) awaitReceive() bool {
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

// wanted returns the lease that the first Receive wants, and how many messages all Receives with
// that lease want.
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
	return limit, lease
}

// deliver hands the same outcome to all Receives.
func (q *Queue) deliver(r received) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		w.got <- r
	}
	q.waiting = nil
}

// deliverAll hands messages out, first come, first served. It gives back, untouched, messages that
// no Receive wants any more.
func (q *Queue) deliverAll(ds []backend.Delivery, lease time.Duration) {
	q.mu.Lock()
	if q.closed { // a Receive that returned them could not settle them
		q.mu.Unlock()
		q.giveBack(ds)
		return
	}
	rest := q.waiting[:0]
	for _, w := range q.waiting {
		if w.lease != lease || len(ds) == 0 {
			rest = append(rest, w)
			continue
		}
		n := min(w.limit, len(ds))
		q.count.handedOut(ds[:n], lease)
		w.got <- received{ds: ds[:n:n]}
		ds = ds[n:]
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	q.mu.Unlock()
	q.giveBack(ds)
}

// giveBackWithin bounds how long a message is given back. If that fails, its lease ends in time.
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

// sleep waits until a message may be due: for the next event of the claim, a wake-up or the hub's
// interval, since a wake-up can be lost. If arrived is not nil, a Receive that arrives ends the sleep.
func (q *Queue) sleep(c Claim, arrived <-chan struct{}) {
	began := q.clock.Now() // the server read its clock on the way; better late than early
	left := q.hub.interval()
	var others <-chan time.Time // other processes push in real time, though a fake clock stands still
	if q.Clock != nil {
		others = time.After(left)
		if !c.Now.IsZero() { // it is zero where maintaining failed
			began = c.Now
		}
	}
	if !c.Next.IsZero() {
		left = min(left, c.Next.Sub(c.Now))
	}
	for {
		t := q.clock.NewTimer(max(left-q.clock.Since(began), 0))
		// A fake clock may have jumped since the timer's delay was computed: read it once more.
		if q.clock.Since(began) >= left || !q.awaitWake(t, others, arrived) {
			t.Stop()
			return
		}
		t.Stop()
		left = min(left, q.wakeTime().Sub(c.Now))
	}
}

// awaitWake waits for a timer, a Receive or a wake-up, and reports whether it was a wake-up.
func (q *Queue) awaitWake(t clockwork.Timer, others <-chan time.Time, arrived <-chan struct{}) bool {
	select {
	case <-q.woken:
		return true
	case <-t.Chan():
	case <-others:
	case <-arrived:
	case <-q.fetching.Done():
	}
	return false
}

// lookNow is before every due time, and is not the zero time.
var lookNow = time.Unix(0, 1)

// wakeBy is a wake-up by a name.
func (q *Queue) wakeBy(name string, due time.Time) {
	if q.Woken != nil {
		due = q.Woken(name, due)
	}
	q.wake(due)
}

// wake tells the fetcher that a message becomes due then. For the zero time it looks at once.
func (q *Queue) wake(due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if due.IsZero() {
		due = lookNow
	}
	if q.soonest.IsZero() || due.Before(q.soonest) {
		q.soonest = due
		signal(q.woken)
	}
}

// wakeTime returns the earliest due time of the wake-ups since the last claim began. A signal may
// be older than that: then there is none, and a time far ahead is returned.
func (q *Queue) wakeTime() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.soonest.IsZero() {
		return backend.LatestDue
	}
	return q.soonest
}
