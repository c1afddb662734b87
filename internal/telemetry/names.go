package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"github.com/delayq/delayq/backend"
)

const (
	keySystem        = attribute.Key("messaging.system")
	keyDestination   = attribute.Key("messaging.destination.name")
	keyOperation     = attribute.Key("messaging.operation.name")
	keyOperationType = attribute.Key("messaging.operation.type")
	keyMessageID     = attribute.Key("messaging.message.id")
	keyBodySize      = attribute.Key("messaging.message.body.size")
	keyBatchSize     = attribute.Key("messaging.batch.message_count")
	keyErrorType     = attribute.Key("error.type")

	keyBackend     = attribute.Key("delayq.backend")
	keyState       = attribute.Key("delayq.state")
	keyDueWithin   = attribute.Key("delayq.due_within")
	keyRedelivered = attribute.Key("delayq.redelivered")
	keyAttempt     = attribute.Key("delayq.attempt")
	keyLateness    = attribute.Key("delayq.lateness")
	keyDelay       = attribute.Key("delayq.delay")
	keyDue         = attribute.Key("delayq.due")
	keyOutcome     = attribute.Key("delayq.outcome")
)

// The operations.
const (
	Push       = "push"
	Cancel     = "cancel"
	Reschedule = "reschedule"
	Receive    = "receive"
	Process    = "process"
	Ack        = "ack"
	Nack       = "nack"
	Dead       = "dead"
	Release    = "release"
	Extend     = "extend"
)

// operationTypes are the types of the operations by the conventions, which have none for some.
var operationTypes = map[string]string{
	Push:       "send",
	Cancel:     "",
	Reschedule: "",
	Receive:    "receive",
	Process:    "process",
	Ack:        "settle",
	Nack:       "settle",
	Dead:       "settle",
	Release:    "settle",
	Extend:     "",
}

func operation(op string) []attribute.KeyValue {
	kvs := []attribute.KeyValue{keyOperation.String(op)}
	if kind := operationTypes[op]; kind != "" {
		kvs = append(kvs, keyOperationType.String(kind))
	}
	return kvs
}

// The failures of a consumer, which no caller sees.
const (
	FailedHandler   = "handler"         // it returned an error
	FailedPanic     = "panic"           // it panicked
	FailedExit      = "exit"            // it ended its goroutine
	FailedTimeout   = "timeout"         // it failed after Timeout had ended its context
	FailedStopped   = "stopped"         // it failed after Drain had ended its context
	FailedLeaseLost = "lease_lost"      // another worker may have the message while it runs
	FailedAbandoned = "abandoned"       // the leases of all attempts ended without a settlement
	IgnoredTimeout  = "timeout_ignored" // it still runs five seconds after Timeout ended its context
	IgnoredStop     = "stop_ignored"    // it still runs five seconds after Drain ended its context
	FailedReceive   = "receive"         // the store returned no messages
	FailedRenew     = "renew"           // the store did not extend a lease
	FailedSettle    = "settle"          // the store did not take the outcome
	FailedRefused   = "refused"         // the store refuses messages of the queue that are due
)

// FailureKinds are all failures of a consumer. Each is counted from 0 on.
var FailureKinds = []string{
	FailedHandler, FailedPanic, FailedExit, FailedTimeout, FailedStopped, FailedLeaseLost,
	FailedAbandoned, IgnoredTimeout, IgnoredStop, FailedReceive, FailedRenew, FailedSettle, FailedRefused,
}

// The outcomes of a message that was handed to a handler.
const (
	OutcomeAcked     = "acked"
	OutcomeRetried   = "retried"
	OutcomeDead      = "dead"
	OutcomeDropped   = "dropped"
	OutcomeReturned  = "returned"  // untouched, since the consumer stops
	OutcomeSettled   = "settled"   // by the handler itself
	OutcomeLost      = "lost"      // its lease was lost
	OutcomeUnsettled = "unsettled" // the store did not take the outcome; the message comes back
)

// A namedError is an error and its name in error.type.
type namedError struct {
	err  error
	name string
}

// errorTypes returns the names of errors. An error may match several: the first one counts.
func errorTypes(settled error) []namedError {
	return []namedError{
		{backend.ErrClosed, "closed"},
		{backend.ErrNotFound, "not_found"},
		{backend.ErrInFlight, "in_flight"},
		{backend.ErrLeaseLost, "lease_lost"},
		{settled, "settled"},
		{backend.ErrDuplicate, "duplicate"},
		{backend.ErrFull, "full"},
		{backend.ErrUnsupported, "unsupported"},
		{backend.ErrInvalid, "invalid"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "deadline_exceeded"},
		{backend.ErrUnconfirmed, "unconfirmed"},
		{backend.ErrOutcomeUnknown, "outcome_unknown"},
		{backend.ErrUnavailable, "unavailable"},
	}
}

// errorType names an error by the sentinel it matches. The names are few: each is a time series of
// its own.
func (r *Recorder) errorType(err error) string {
	for _, t := range r.errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	return "_OTHER"
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
