package delayq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// PanicError is what a message failed with when its handler panicked.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the handler's goroutine
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v\n%s", e.Value, e.Stack) }

// Unwrap returns the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// start handles a message in a goroutine of its own, which is a worker.
func (c *consumer) start(d *Delivery) {
	ctx, cancel := context.WithCancelCause(c.handling)
	c.mu.Lock()
	c.running[d] = &run{cancel: cancel, timer: c.clockFor(d)}
	c.mu.Unlock()
	go c.handle(ctx, d)
}

func (c *consumer) handle(ctx context.Context, d *Delivery) {
	err := errGoexit
	var p processing
	defer func() { c.finish(ctx, d, p, err) }() // also when the handler ends its goroutine
	if c.maxAttempts > 0 && d.Attempt > c.maxAttempts {
		err = fmt.Errorf("%d attempts ended without a word from the worker", c.maxAttempts)
		c.meter.failure(ctx, failedAbandoned, 1)
		return
	}
	ctx, p = c.processing(ctx, d)
	err = c.call(ctx, d)
}

var errGoexit = errors.New("handler ended its goroutine (runtime.Goexit)")

func (c *consumer) call(ctx context.Context, d *Delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return c.handler(ctx, d)
}

// finish settles the message by the handler's error and has the worker take the next one, first where it need not wait for the store.
func (c *consumer) finish(ctx context.Context, d *Delivery, p processing, err error) {
	p.returned(ctx, err)
	overlap := c.overlap()
	if overlap {
		c.release(d)
	}
	outcome, unsettled := c.settleBy(ctx, d, err)
	p.end(outcome, unsettled)
	if overlap {
		c.overlapped()
	} else {
		c.release(d)
	}
}

// release ends what is kept of a handler, and has its worker take the next message.
func (c *consumer) release(d *Delivery) {
	left, next := c.leave(d)
	left.cancel(nil)
	if left.timer != nil {
		left.timer.Stop()
	}
	if next != nil {
		c.start(next)
	}
}

// settleBy returns what became of the message, and the error of a settling that failed.
func (c *consumer) settleBy(ctx context.Context, d *Delivery, err error) (outcome string, unsettled error) {
	cause := context.Cause(ctx)
	if err != nil && errors.Is(cause, ErrTimeout) {
		err = fmt.Errorf("%w (%v): %w", ErrTimeout, c.timeout, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	switch {
	case d.settled.Load():
		if err != nil {
			c.log.Warn("delayq: handler settled the message and failed", "id", d.ID, "err", err)
		}
		return outcomeSettled, nil
	case err == nil:
		return outcomeAcked, c.settled(ctx, d, d.Ack(ctx))
	case errors.Is(cause, ErrLeaseLost):
		c.log.Warn("delayq: handler lost its lease", "id", d.ID, "attempt", d.Attempt, "err", err)
		return outcomeLost, nil
	case errors.Is(cause, ErrDrain): // it was stopped, which says nothing about the message
		return outcomeReturned, c.settled(ctx, d, d.handBack(ctx))
	case errors.Is(err, ErrDrop):
		c.log.Warn("delayq: handler dropped the message", "id", d.ID, "attempt", d.Attempt, "err", err)
		return outcomeDropped, c.settled(ctx, d, d.Ack(ctx))
	case errors.Is(err, ErrDeadLetter):
		return outcomeDead, c.bury(ctx, d, err)
	case c.maxAttempts > 0 && d.Attempt >= c.maxAttempts:
		return outcomeDead, c.bury(ctx, d, err)
	}
	return outcomeRetried, c.retryLater(ctx, d, err)
}

// settleWithin bounds a settle by its own context, since the handler's may have ended.
const settleWithin = 30 * time.Second

func (c *consumer) bury(ctx context.Context, d *Delivery, err error) (unsettled error) {
	c.log.Error("delayq: message is dead", "id", d.ID, "attempt", d.Attempt, "err", err)
	return c.settled(ctx, d, d.Dead(ctx, err.Error()))
}

func (c *consumer) retryLater(ctx context.Context, d *Delivery, err error) (unsettled error) {
	delay := c.delayAfter(d, err)
	c.log.Warn("delayq: handler failed", "id", d.ID, "attempt", d.Attempt, "retry", delay, "err", err)
	return c.settled(ctx, d, d.Nack(ctx, delay))
}

// delayAfter asks the error, then the retry policy, which may be wrong or panic.
func (c *consumer) delayAfter(d *Delivery, err error) (delay time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("delayq: retry policy panicked", "id", d.ID, "panic", v, "stack", string(debug.Stack()))
			delay = defaultRetry.Delay(d.Attempt, err)
		}
	}()
	delay, ok := asked(err)
	if !ok {
		delay = c.retry.Delay(d.Attempt, err)
	}
	if bad := validDelay(delay, c.traits); bad != nil {
		c.log.Error("delayq: retry policy or handler asks for a wrong delay", "id", d.ID, "err", bad)
		delay = min(max(delay, 0), maxDelay(c.traits))
	}
	return delay
}

// settled logs what no caller hears. The message comes back when its lease ends.
func (c *consumer) settled(ctx context.Context, d *Delivery, err error) (unsettled error) {
	if err != nil {
		c.meter.failure(ctx, failedSettle, 1)
		c.log.Warn("delayq: settling failed", "id", d.ID, "attempt", d.Attempt, "err", err)
	}
	return err
}
