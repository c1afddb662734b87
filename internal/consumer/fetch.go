package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

// maxBatch is delayq.MaxBatch.
const maxBatch = 10_000

// fetch receives messages and hands them to the workers until ctx ends, but not while the gate is
// shut. Messages that no worker has then are given back.
func (c *consumer) fetch(ctx context.Context) {
	for closed := false; ctx.Err() == nil && !closed; {
		open, stop := c.Gate.pass(ctx)
		var unseen []Delivery
		unseen, closed = c.fetchWhile(open)
		c.giveBack(unseen)
		stop()
	}
}

// fetchWhile returns the messages received when ctx ends, and whether the queue is closed.
func (c *consumer) fetchWhile(ctx context.Context) (unseen []Delivery, closed bool) {
	var failures int
	for {
		n := c.allowed(ctx, c.demand(ctx))
		if n == 0 {
			return nil, false
		}
		asked := c.Clock.Now()
		ds, err := c.Receive(ctx, n)
		if c.Rate != nil {
			c.Rate.AllowN(c.Clock.Now(), len(ds))
		}
		switch {
		case ctx.Err() != nil || c.Gate.isShut() || errors.Is(err, backend.ErrClosed):
			return ds, errors.Is(err, backend.ErrClosed)
		case err != nil:
			failures++
			c.Telemetry.Failed(ctx, telemetry.FailedReceive, 1)
			c.Log.Warn("delayq: receiving failed; trying again", "err", err, "failures", failures)
			c.pause(ctx, c.Refetch(failures, err))
		default:
			failures = 0
			c.hand(ds, n, c.Clock.Since(asked))
		}
	}
}

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
		c.ahead.measure(c.Clock.Now())
	}
	return c.demandLocked()
}

func (c *consumer) demandLocked() int { return min(c.idle+c.ahead.room(), maxBatch) }

// allowed waits until the rate limit lets a message pass, and returns how many of n it does; 0 when
// ctx has ended.
func (c *consumer) allowed(ctx context.Context, n int) int {
	if c.Rate == nil {
		return n
	}
	for ctx.Err() == nil {
		tokens := c.Rate.TokensAt(c.Clock.Now())
		if tokens >= 1 {
			return min(n, int(tokens))
		}
		missing := (1 - tokens) / float64(c.Rate.Limit()) // seconds
		c.pause(ctx, time.Duration(min(missing*1e9, float64(backend.MaxDelay)))+1)
	}
	return 0
}

// hand gives messages to the idle workers, in order, and keeps the others for the next idle ones.
func (c *consumer) hand(ds []Delivery, asked int, took time.Duration) {
	now, surplus := c.share(ds, asked, took)
	for _, d := range now {
		c.start(d)
	}
	c.handBack(surplus)
}

func (c *consumer) share(ds []Delivery, asked int, took time.Duration) (now, surplus []Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(c.idle, len(ds))
	c.idle -= n
	c.ahead.claimed(len(ds), asked, took)
	surplus = c.ahead.add(ds[n:])
	c.watchLocked(c.ahead.hold)
	return ds[:n], surplus
}

// replace ends a run's bookkeeping and takes the next message for its worker.
func (c *consumer) replace(r *run) (next Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, r)
	c.ahead.finished++
	if len(c.ahead.waiting) > 0 && c.fetching.Err() == nil && !c.Gate.isShut() {
		next = c.ahead.next(c.Clock.Now())
	}
	if next == nil {
		c.idle++
	}
	if c.demandLocked() > 0 {
		c.notify()
	}
	return next
}

// watchLocked has overdue called after d, unless a call is arranged or nothing waits.
func (c *consumer) watchLocked(d time.Duration) {
	if c.watch == nil && len(c.ahead.waiting) > 0 {
		c.watch = c.Clock.AfterFunc(min(d, c.ahead.hold), c.overdue)
	}
}

// overdue gives back all that waits once the first message has waited too long: the rest would
// wait as long.
func (c *consumer) overdue() {
	ds := c.takeOverdue(c.Clock.Now())
	if len(ds) == 0 {
		return
	}
	defer c.returning.Done()
	c.handBack(ds)
}

func (c *consumer) takeOverdue(now time.Time) []Delivery {
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

// giveBack gives back messages that no handler has seen, while the handlers go on.
func (c *consumer) giveBack(unseen []Delivery) {
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

// handBack gives back messages that no handler has seen. Messages that cannot be given back return
// when their leases end.
func (c *consumer) handBack(ds []Delivery) {
	ctx, cancel := context.WithTimeout(c.giving, settleWithin)
	defer cancel()
	for some := range slices.Chunk(ds, maxBatch) {
		rs := make([]backend.Return, len(some))
		for i, d := range some {
			rs[i] = backend.Return{Lease: d.Lease().Token(), Untouched: true}
		}
		for i, err := range c.Store.Nack(ctx, rs) {
			_ = c.settled(ctx, some[i], err)
		}
	}
}
