package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

// A Failure is the meaning of a handler's error.
type Failure struct {
	Err        error
	Reason     string         // the text of Err, for a dead letter
	Kind       string         // for the metrics; empty: it depends on why the handler's context ended
	Drop       bool           // the message failed and is done
	Dead       bool           // another attempt would not help
	RetryAfter *time.Duration // nil: the retry policy decides
}

// An Action is the consumer's operation on a message that was handled.
type Action string

// The actions.
const (
	Acked    Action = telemetry.OutcomeAcked
	Retried  Action = telemetry.OutcomeRetried  // nacked, to be due again after a delay
	Died     Action = telemetry.OutcomeDead     // made a dead letter
	Dropped  Action = telemetry.OutcomeDropped  // acknowledged, though it failed
	Returned Action = telemetry.OutcomeReturned // released, since the consumer stops
	Settled  Action = telemetry.OutcomeSettled  // nothing: the handler settled it itself
	Lost     Action = telemetry.OutcomeLost     // nothing: its lease is lost
	Expired  Action = "expired"                 // made a dead letter; no handler got it
)

// An ending is how an attempt to handle a message ended: all that the decision depends on.
type ending struct {
	failure     *Failure      // nil when the handler succeeded
	attempt     int           // 1 for the first
	maxAttempts int           // 0 for no limit
	settled     bool          // the handler settled the message itself, or is doing so
	cause       error         // why the handler's context ended; nil when it did not
	timeout     time.Duration // for the text of the error
	held        time.Duration // since the message was received
}

// A decision is the action on a message, and its reason.
type decision struct {
	action  Action
	delay   time.Duration // until the next attempt
	err     error         // nil when the handler succeeded
	reason  string        // of the dead letter
	kind    string        // of the failure, for the metrics; empty when the handler succeeded
	stopped bool          // a stop ended the handler's context
}

// countedAfter is how long a handler may have a message before a stop counts the attempt. A stop
// says nothing about the message, but a handler that hangs until each stop would keep it forever.
const countedAfter = time.Hour

// decide chooses the action on a message. It calls retry, for the delay, only when the message is
// retried and the handler's error asks for no delay of its own.
func decide(e ending, retry func(err error) time.Duration) decision {
	if e.failure == nil {
		if e.settled {
			return decision{action: Settled}
		}
		return decision{action: Acked}
	}
	d := decision{err: e.failure.Err, reason: e.failure.Reason, kind: telemetry.FailedHandler}
	lost := errors.Is(e.cause, backend.ErrLeaseLost)
	d.stopped = errors.Is(e.cause, ErrDrain)
	switch {
	case errors.Is(e.cause, ErrTimeout):
		d.kind = telemetry.FailedTimeout
		d.err = fmt.Errorf("%w (%v): %s", ErrTimeout, e.timeout, d.reason)
		d.reason = d.err.Error()
	case lost:
		d.kind = telemetry.FailedLeaseLost
	case d.stopped:
		d.kind = telemetry.FailedStopped
	}
	if e.failure.Kind != "" {
		d.kind = e.failure.Kind
	}
	last := e.maxAttempts > 0 && e.attempt >= e.maxAttempts
	switch {
	case e.settled:
		d.action = Settled
	case lost:
		d.action = Lost
	case d.stopped && e.held < countedAfter:
		d.action = Returned
	case d.stopped && last:
		d.action = Died
	case d.stopped:
		d.action = Retried
	case e.failure.Drop:
		d.action = Dropped
	case e.failure.Dead, last:
		d.action = Died
	case e.failure.RetryAfter != nil:
		d.action, d.delay = Retried, *e.failure.RetryAfter
	default:
		d.action, d.delay = Retried, retry(d.err)
	}
	return d
}

// abandoned is the failure of a message that was handed out as often as it may be, each time to a
// worker that never settled it.
func abandoned(attempts int) *Failure {
	err := fmt.Errorf("%d attempts ended unsettled", attempts)
	return &Failure{Err: err, Reason: err.Error(), Kind: telemetry.FailedAbandoned}
}

var errExit = errors.New("handler ended its goroutine (runtime.Goexit)")

// exited is the failure of a handler that ended its goroutine. Nothing writes to it: one for each
// message would be an allocation.
var exited = Failure{Err: errExit, Reason: errExit.Error(), Kind: telemetry.FailedExit}
