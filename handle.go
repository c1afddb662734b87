package delayq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/telemetry"
)

// PanicError is what a message failed with when its handler panicked.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the handler's goroutine
}

func (e *PanicError) Error() string {
	if e == nil {
		return "handler panicked"
	}
	return fmt.Sprintf("handler panicked: %s\n%s", guard.Sprint(e.Value), e.Stack)
}

// Unwrap returns the value where it is an error. A panic is a failure all the same: that the value matches [ErrDrop] or [ErrDeadLetter],
// or is a [RetryAfterError], decides nothing.
func (e *PanicError) Unwrap() error {
	if e == nil {
		return nil
	}
	err, _ := e.Value.(error)
	return err
}

// start handles a message in a goroutine of its own, which is a worker.
func (c *consumer) start(d *Delivery) {
	ctx, cancel := context.WithCancelCause(c.handling)
	c.mu.Lock()
	d.consumed = true
	c.running[d] = &run{cancel: cancel, timer: c.clockFor(d)}
	c.mu.Unlock()
	go c.handle(ctx, d)
}

func (c *consumer) handle(ctx context.Context, d *Delivery) {
	v := verdict{err: errGoexit, reason: errGoexit.Error(), failure: telemetry.FailedExit, delay: time.Second, dead: c.lastAttempt(d)} // unless judge returns
	var p telemetry.Processing
	defer func() { c.finish(ctx, d, p, v) }()
	if c.maxAttempts > 0 && d.attempt > c.maxAttempts {
		v = abandoned(c.maxAttempts)
		c.telemetry.Failed(ctx, v.failure, 1)
		return
	}
	if c.telemetry != nil {
		now := c.clock.Now()
		ctx, p = c.telemetry.StartProcess(ctx, d.observed(now), now)
	}
	panicked, err := false, errGoexit
	defer func() { // also when the handler ends its goroutine
		v = c.judge(ctx, d, err, panicked)
		p.Returned(ctx, v.failure, v.err)
	}()
	panicked, err = c.call(ctx, d)
}

var errGoexit = errors.New("handler ended its goroutine (runtime.Goexit)")

func (c *consumer) call(ctx context.Context, d *Delivery) (panicked bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			panicked, err = true, &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return false, c.handler(ctx, d)
}

// finish settles the message by the verdict and has the worker take the next one, first where it need not wait for the store. Its worker
// goes on whatever the user's logger does.
func (c *consumer) finish(ctx context.Context, d *Delivery, p telemetry.Processing, v verdict) {
	if c.overlap() {
		c.release(d)
		defer c.overlapped()
	} else {
		defer c.release(d)
	}
	outcome, unsettled := c.settleBy(ctx, d, v)
	p.End(outcome, unsettled)
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
func (c *consumer) settleBy(ctx context.Context, d *Delivery, v verdict) (outcome string, unsettled error) {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	switch {
	case d.ended():
		if v.err != nil {
			c.log.Warn("delayq: handler settled the message and failed", "id", d.ID, "err", v.err)
		}
		return telemetry.OutcomeSettled, nil
	case v.err == nil:
		return telemetry.OutcomeAcked, c.settled(ctx, d, d.Ack(ctx))
	case errors.Is(cause, ErrLeaseLost):
		c.log.Warn("delayq: handler lost its lease", "id", d.ID, "attempt", d.attempt, "err", v.err)
		return telemetry.OutcomeLost, nil
	case errors.Is(cause, ErrDrain):
		return c.settleStopped(ctx, d, v)
	case v.drop:
		c.log.Warn("delayq: handler dropped the message", "id", d.ID, "attempt", d.attempt, "err", v.err)
		return telemetry.OutcomeDropped, c.settled(ctx, d, d.Ack(ctx))
	case v.dead:
		return telemetry.OutcomeDead, c.bury(ctx, d, v)
	}
	return telemetry.OutcomeRetried, c.retryLater(ctx, d, v)
}

// countedAfter is how long a handler may have a message before a stop counts the attempt. A stop says nothing about the message, but a
// handler that hangs until each stop would have it for ever.
const countedAfter = time.Hour

// settleStopped gives back the message of a handler whose context a stop ended.
func (c *consumer) settleStopped(ctx context.Context, d *Delivery, v verdict) (outcome string, unsettled error) {
	if d.heldSince(c.clock.Now()) < countedAfter {
		return telemetry.OutcomeReturned, c.settled(ctx, d, d.Release(ctx))
	}
	if c.lastAttempt(d) {
		return telemetry.OutcomeDead, c.bury(ctx, d, v)
	}
	c.log.Warn("delayq: handler ran until it was stopped; the attempt counts", "id", d.ID, "attempt", d.attempt, "err", v.err)
	return telemetry.OutcomeRetried, c.settled(ctx, d, d.Nack(ctx, 0))
}

func (c *consumer) lastAttempt(d *Delivery) bool {
	return c.maxAttempts > 0 && d.attempt >= c.maxAttempts
}

// settleWithin bounds a settle by its own context, since the handler's may have ended.
const settleWithin = 30 * time.Second

func (c *consumer) bury(ctx context.Context, d *Delivery, v verdict) (unsettled error) {
	c.log.Error("delayq: message is dead", "id", d.ID, "attempt", d.attempt, "err", v.err)
	return c.settled(ctx, d, d.Dead(ctx, v.reason))
}

func (c *consumer) retryLater(ctx context.Context, d *Delivery, v verdict) (unsettled error) {
	c.log.Warn("delayq: handler failed", "id", d.ID, "attempt", d.attempt, "retry", v.delay, "err", v.err)
	return c.settled(ctx, d, d.Nack(ctx, v.delay))
}

// settled logs what no caller hears. The message comes back when its lease ends, unless the handler has settled it meanwhile.
func (c *consumer) settled(ctx context.Context, d *Delivery, err error) (unsettled error) {
	if errors.Is(err, ErrSettled) {
		return nil
	}
	if err != nil {
		c.telemetry.Failed(ctx, telemetry.FailedSettle, 1)
		c.log.Warn("delayq: settling failed", "id", d.ID, "attempt", d.attempt, "err", err)
	}
	return err
}
