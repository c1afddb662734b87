package delayq

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

func (q *queue) Consume(ctx context.Context, h Handler, opts ...ConsumeOption) error {
	o, err := newConsumeOptions(opts)
	if err == nil && h == nil {
		err = backend.Invalid("handler", described("nil"), "a function")
	}
	if err = firstError(err, validContext(ctx)); err == nil && q.traits.UncountedAttempts {
		err = o.uncounted(q)
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

// A consumer is one running Consume: a loop that fetches, a goroutine for each message being
// handled, and one that renews their leases.
type consumer struct {
	*queue
	handler Handler
	*consumeOptions
	idle chan struct{} // one for each worker without a message

	mu      sync.Mutex
	running map[*Delivery]context.CancelCauseFunc
}

func newConsumer(q *queue, h Handler, o *consumeOptions) *consumer {
	c := &consumer{
		queue:          q,
		handler:        h,
		consumeOptions: o,
		idle:           make(chan struct{}, o.workers),
		running:        make(map[*Delivery]context.CancelCauseFunc),
	}
	c.release(o.workers)
	return c
}

func (c *consumer) run(ctx context.Context) error {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.stopping, stop)()
	handling, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	stopRenewing := c.keepRenewing(context.WithoutCancel(ctx))
	defer stopRenewing()
	c.fetch(fetching, handling)
	return c.drained(abort)
}

// fetch takes as many messages as there are idle workers, until ctx ends.
func (c *consumer) fetch(ctx, handling context.Context) {
	var failures int
	for {
		n := c.acquire(ctx)
		if n == 0 {
			return
		}
		ds, err := c.receive(ctx, n)
		c.release(max(n-len(ds), 0))
		switch {
		case ctx.Err() != nil || errors.Is(err, ErrClosed):
			c.handBack(handling, ds)
			return
		case err != nil:
			failures++
			c.log.Warn("delayq: receiving failed; trying again", "err", err, "failures", failures)
			c.pause(ctx, refetch.Delay(failures, err))
		default:
			failures = 0
			for _, d := range ds {
				c.start(handling, d)
			}
		}
	}
}

// refetch spaces the tries of a consumer whose store fails.
var refetch = Exponential(50*time.Millisecond, 5*time.Second)

// acquire waits for an idle worker and takes all there are, up to MaxBatch; 0 when ctx has ended.
func (c *consumer) acquire(ctx context.Context) (n int) {
	select {
	case <-c.idle:
		n = 1
	case <-ctx.Done():
		return 0
	}
	for n < MaxBatch {
		select {
		case <-c.idle:
			n++
		default:
			return n
		}
	}
	return n
}

func (c *consumer) release(n int) {
	for range n {
		c.idle <- struct{}{}
	}
}

// handBack gives back messages that no handler has seen.
func (c *consumer) handBack(ctx context.Context, ds []*Delivery) {
	defer c.release(len(ds))
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for _, d := range ds {
		c.settled(d, d.handBack(ctx))
	}
}

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
	left := c.idleWithin(c.workers, c.drain)
	if left == 0 {
		return nil
	}
	c.log.Warn("delayq: stopping handlers that outlived the drain", "handlers", left, "drain", c.drain)
	abort(ErrDrain)
	if left = c.idleWithin(left, obeyWithin); left > 0 {
		c.log.Error("delayq: handlers ignore their contexts; their messages return when the leases end", "handlers", left)
		return ErrDrain
	}
	return nil
}

// idleWithin waits for n workers to be idle and returns how many are not by then.
func (c *consumer) idleWithin(n int, d time.Duration) int {
	t := c.clock.NewTimer(d)
	defer t.Stop()
	for ; n > 0; n-- {
		select {
		case <-c.idle:
			continue
		default:
		}
		select {
		case <-c.idle:
		case <-t.Chan():
			return n
		}
	}
	return 0
}
