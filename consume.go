package delayq

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

func (q *queue) Consume(ctx context.Context, h Handler, opts ...ConsumeOption) error {
	o, err := newConsumeOptions(opts)
	if err == nil && h == nil {
		err = backend.Invalid("handler", described("nil"), "a function")
	}
	if err = firstError(err, validContext(ctx)); err == nil && !q.Supports(CountingAttempts) {
		err = o.uncounted(q)
	}
	if err == nil {
		if h = o.wrapped(h); h == nil {
			err = backend.Invalid("Use", described("middleware that returns nil"), "middleware that returns a handler")
		}
	}
	if err != nil {
		return q.fail("consume", "", err)
	}
	if !q.join() {
		return q.fail("consume", "", ErrClosed)
	}
	defer q.consumers.Done()
	return q.fail("consume", "", newConsumer(q, h, o).run(ctx))
}

// join makes Close wait, unless it has begun.
func (q *queue) join() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping.Err() != nil {
		return false
	}
	q.consumers.Add(1)
	return true
}

// A run is a message in a handler's hands.
type run struct {
	cancel   context.CancelCauseFunc
	timer    clockwork.Timer // nil without a timeout
	forsaken bool            // its lease is renewed no longer
	lost     bool            // its lease is lost
}

// A consumer is one running Consume: a loop that fetches, a goroutine for each message being
// handled, and one that renews their leases.
type consumer struct {
	*queue
	handler Handler
	*consumeOptions
	fetching context.Context //nolint:containedctx // ends with the loop
	handling context.Context //nolint:containedctx // ends with the last handler

	changed   chan struct{}  // a hint that a worker is idle or that there is room
	returning sync.WaitGroup // messages being given back

	mu       sync.Mutex
	idle     int // workers without a message; none while one waits
	settling int // messages whose workers have gone on
	running  map[*Delivery]*run
	ahead    prefetch
	watch    clockwork.Timer // on what waits, nil for none
}

func newConsumer(q *queue, h Handler, o *consumeOptions) *consumer {
	return &consumer{
		queue:          q,
		handler:        h,
		consumeOptions: o,
		changed:        make(chan struct{}, 1),
		idle:           o.workers,
		running:        make(map[*Delivery]*run),
		ahead:          newPrefetch(o, q.lease, q.clock.Now()),
	}
}

func (c *consumer) run(ctx context.Context) error {
	var stop context.CancelFunc
	c.fetching, stop = context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.stopping, stop)()
	var abort context.CancelCauseFunc
	c.handling, abort = context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	defer c.telemetry.AddWorkers(c.workers)()
	stopRenewing := c.keepRenewing(context.WithoutCancel(ctx))
	defer stopRenewing()
	c.fetch(c.fetching)
	defer c.returning.Wait()
	return c.drained(abort)
}

// fetch claims messages and hands them to the workers, until ctx ends, but not while the queue is paused. What no worker has
// then is given back.
func (c *consumer) fetch(ctx context.Context) {
	for closed := false; ctx.Err() == nil && !closed; {
		flowing, stop := c.gate.pass(ctx)
		var unseen []*Delivery
		unseen, closed = c.fetchWhile(flowing)
		c.giveBack(unseen)
		stop()
	}
}

// fetchWhile returns what it has claimed when ctx ends, and whether the store is closed.
func (c *consumer) fetchWhile(ctx context.Context) (unseen []*Delivery, closed bool) {
	var failures int
	for {
		n := c.allowed(ctx, c.demand(ctx))
		if n == 0 {
			return nil, false
		}
		ds, err := c.receive(ctx, n)
		c.spend(len(ds))
		switch {
		case ctx.Err() != nil || c.gate.isShut() || errors.Is(err, ErrClosed):
			return ds, errors.Is(err, ErrClosed)
		case err != nil:
			failures++
			c.telemetry.Failed(ctx, telemetry.FailedReceive, 1)
			c.log.Warn("delayq: receiving failed; trying again", "err", err, "failures", failures)
			c.pause(ctx, refetch.Delay(failures, err))
		default:
			failures = 0
			c.hand(ds, n)
		}
	}
}

// refetch spaces the tries of a consumer whose store fails.
var refetch = Exponential(50*time.Millisecond, 5*time.Second)

func (c *consumer) pause(ctx context.Context, d time.Duration) {
	t := c.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.Chan():
	case <-ctx.Done():
	}
}

// obeyWithin is how long handlers may take to return once their contexts have ended.
const obeyWithin = 5 * time.Second

// drained waits until all workers are idle, as long as it may.
func (c *consumer) drained(abort context.CancelCauseFunc) error {
	left := c.busyAfter(c.drain)
	if left == 0 {
		return nil
	}
	level := slog.LevelWarn
	if c.drain == 0 {
		level = slog.LevelDebug // as was asked for
	}
	c.log.Log(context.Background(), level, "delayq: stopping handlers that outlived the drain", "handlers", left, "drain", c.drain)
	abort(ErrDrain)
	if left = c.busyAfter(obeyWithin); left > 0 {
		c.telemetry.Failed(context.Background(), telemetry.IgnoredStop, left)
		c.log.Error("delayq: handlers ignore their contexts; their messages return when the leases end", "handlers", left)
		return ErrDrain
	}
	return nil
}

// busyAfter waits for d, or until all workers are idle, and returns how many are not.
func (c *consumer) busyAfter(d time.Duration) (n int) {
	t := c.clock.NewTimer(d)
	defer t.Stop()
	for n = c.busy(); n > 0; n = c.busy() {
		select {
		case <-c.changed:
		case <-t.Chan():
			return c.busy()
		}
	}
	return 0
}

func (c *consumer) busy() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workers - c.idle + c.settling
}
