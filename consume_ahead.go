package delayq

import (
	"context"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// demand waits for an idle worker, or for room to claim ahead, and returns how many messages to
// claim; 0 when ctx has ended.
func (c *consumer) demand(ctx context.Context) int {
	for {
		if n := c.measured(); n > 0 {
			return n
		}
		select {
		case <-c.changed:
		case <-ctx.Done():
			return 0
		}
	}
}

func (c *consumer) measured() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead.limit > 0 {
		c.ahead.measure(c.clock.Now())
	}
	return c.demandLocked()
}

func (c *consumer) demandLocked() int { return min(c.idle+c.ahead.room(), MaxBatch) }

// hand gives messages to the idle workers, in order, and keeps the others for those that will be.
func (c *consumer) hand(ds []*Delivery, asked int) {
	now, surplus := c.share(ds, asked)
	for _, d := range now {
		c.start(d)
	}
	c.handBack(surplus)
}

func (c *consumer) share(ds []*Delivery, asked int) (now, surplus []*Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(c.idle, len(ds))
	c.idle -= n
	c.ahead.plenty = 2*len(ds) >= asked
	surplus = c.ahead.add(ds[n:])
	c.watchLocked(c.ahead.hold)
	return ds[:n], surplus
}

// leave ends what is kept of a handler and takes the next message for its worker.
func (c *consumer) leave(d *Delivery) (left *run, next *Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = c.running[d]
	delete(c.running, d)
	c.ahead.finished++
	if len(c.ahead.waiting) > 0 && c.fetching.Err() == nil {
		next = c.ahead.next(c.clock.Now())
	}
	if next == nil {
		c.idle++
	}
	if c.demandLocked() > 0 {
		c.notify()
	}
	return left, next
}

func (c *consumer) notify() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// watchLocked has what waits for a worker looked at after d, unless that is arranged.
func (c *consumer) watchLocked(d time.Duration) {
	if c.watch == nil && len(c.ahead.waiting) > 0 {
		c.watch = c.clock.AfterFunc(min(d, c.ahead.hold), c.overdue)
	}
}

// overdue gives back what no worker came for: all of it, since the rest would wait as long.
func (c *consumer) overdue() {
	ds := c.takeOverdue(c.clock.Now())
	if len(ds) == 0 {
		return
	}
	defer c.returning.Done()
	c.handBack(ds)
}

func (c *consumer) takeOverdue(now time.Time) []*Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = nil
	if len(c.ahead.waiting) == 0 {
		return nil
	}
	if left := c.ahead.left(now); left > 0 {
		c.watchLocked(left)
		return nil
	}
	c.ahead.stall(now)
	c.returning.Add(1)
	return c.ahead.takeAll()
}

// giveBack gives back what no handler has seen, while those that run go on.
func (c *consumer) giveBack(unseen []*Delivery) {
	c.mu.Lock()
	ds := append(c.ahead.takeAll(), unseen...)
	if c.watch != nil && c.watch.Stop() {
		c.watch = nil
	}
	c.mu.Unlock()
	if len(ds) > 0 {
		c.returning.Go(func() { c.handBack(ds) })
	}
}

// handBack gives back messages that no handler has seen. What cannot be given back returns when the
// leases end.
func (c *consumer) handBack(ds []*Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.handling), settleWithin)
	defer cancel()
	for some := range slices.Chunk(ds, MaxBatch) {
		rs := make([]backend.Return, len(some))
		for i, d := range some {
			rs[i] = backend.Return{Lease: d.lease, Untouched: true}
		}
		c.returned(ctx, some, c.store.Nack(ctx, rs))
	}
}

func (c *consumer) returned(ctx context.Context, ds []*Delivery, errs []error) {
	for i, err := range errs {
		_ = c.settled(ctx, ds[i], err)
	}
}
