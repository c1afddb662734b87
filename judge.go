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

// A verdict is what a handler's error says about its message. None of the user's code is asked after it is made, but for the logger and the
// telemetry.
type verdict struct {
	err     error         // nil when the handler succeeded
	reason  string        // of a dead letter
	failure string        // its kind, for the metrics
	drop    bool          // the message is done, though it failed
	dead    bool          // it is not tried again
	delay   time.Duration // until the next attempt
}

func abandoned(attempts int) verdict {
	err := fmt.Errorf("%d attempts ended without a word from the worker", attempts)
	return verdict{err: err, reason: err.Error(), failure: telemetry.FailedAbandoned, dead: true}
}

// judge asks a handler's error, and the retry policy where the message is tried again. Methods of either may panic: the message has failed
// then, and nothing else is known.
func (c *consumer) judge(ctx context.Context, d *Delivery, err error, panicked bool) (v verdict) {
	if err == nil {
		return verdict{}
	}
	cause := context.Cause(ctx)
	retry, asks := time.Duration(0), false
	caught := guard.Call(fmt.Sprintf("handler's error, a %T,", err), func() {
		v = verdict{reason: err.Error(), failure: failureOf(cause)}
		var inner *PanicError
		if panicked || errors.As(err, &inner) {
			v.failure = telemetry.FailedPanic
			return
		}
		if errors.Is(err, errGoexit) {
			v.failure = telemetry.FailedExit
		}
		v.drop, v.dead = errors.Is(err, ErrDrop), errors.Is(err, ErrDeadLetter)
		retry, asks = asked(err)
	})
	if caught != nil {
		err, asks, v = caught, false, verdict{reason: caught.Error(), failure: telemetry.FailedPanic}
	}
	if errors.Is(cause, ErrTimeout) {
		err = fmt.Errorf("%w (%v): %s", ErrTimeout, c.timeout, v.reason)
		v.reason = err.Error()
	}
	v.err = err
	v.dead = v.dead || c.lastAttempt(d)
	if v.dead || v.drop || errors.Is(cause, ErrDrain) || errors.Is(cause, ErrLeaseLost) {
		return v
	}
	if !asks {
		retry = c.askPolicy(d, err)
	}
	v.delay = c.bounded(d, retry)
	return v
}

// askPolicy asks the retry policy, which may panic.
func (c *consumer) askPolicy(d *Delivery, err error) (delay time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("delayq: retry policy panicked", "id", d.ID, "panic", v, "stack", string(debug.Stack()))
			delay = defaultRetry.Delay(d.attempt, err)
		}
	}()
	return c.retry.Delay(d.attempt, err)
}

// bounded returns a delay that the store takes.
func (c *consumer) bounded(d *Delivery, delay time.Duration) time.Duration {
	if bad := validDelay(delay, c.traits); bad != nil {
		c.log.Error("delayq: retry policy or handler asks for a wrong delay", "id", d.ID, "err", bad)
		return min(max(delay, 0), maxDelay(c.traits))
	}
	return delay
}

// failureOf returns the kind of failure of a handler that neither panicked nor ended its goroutine.
// cause is that of its context's end.
func failureOf(cause error) string {
	switch {
	case errors.Is(cause, ErrTimeout):
		return telemetry.FailedTimeout
	case errors.Is(cause, ErrLeaseLost):
		return telemetry.FailedLeaseLost
	case errors.Is(cause, ErrDrain):
		return telemetry.FailedStopped
	}
	return telemetry.FailedHandler
}
