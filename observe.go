package delayq

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
)

// What a queue tells OpenTelemetry: by the semantic conventions for messaging where they have a name for it, else as delayq.….
const (
	scopeName = "github.com/delayq/delayq"
	schemaURL = "https://opentelemetry.io/schemas/1.41.0"
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
	keyRedelivered = attribute.Key("delayq.redelivered")
	keyAttempt     = attribute.Key("delayq.attempt")
	keyLateness    = attribute.Key("delayq.lateness")
	keyDelay       = attribute.Key("delayq.delay")
	keyDue         = attribute.Key("delayq.due")
	keyOutcome     = attribute.Key("delayq.outcome")
)

// The operations, with their types by the conventions, which have none for some.
const (
	opPush       = "push"
	opCancel     = "cancel"
	opReschedule = "reschedule"
	opReceive    = "receive"
	opProcess    = "process"
	opAck        = "ack"
	opNack       = "nack"
	opDead       = "dead"
	opRelease    = "release"
	opExtend     = "extend"
)

var operationTypes = map[string]string{
	opPush:       "send",
	opCancel:     "",
	opReschedule: "",
	opReceive:    "receive",
	opProcess:    "process",
	opAck:        "settle",
	opNack:       "settle",
	opDead:       "settle",
	opRelease:    "settle",
	opExtend:     "",
}

// identity is what all that a queue tells has in common.
func (q *queue) identity() []attribute.KeyValue {
	return []attribute.KeyValue{keySystem.String("delayq"), keyDestination.String(q.name), keyBackend.String(q.traits.Name)}
}

func operation(op string) []attribute.KeyValue {
	kvs := []attribute.KeyValue{keyOperation.String(op)}
	if kind := operationTypes[op]; kind != "" {
		kvs = append(kvs, keyOperationType.String(kind))
	}
	return kvs
}

var errorTypes = []struct {
	err  error
	name string
}{
	{ErrClosed, "closed"},
	{ErrNotFound, "not_found"},
	{ErrInFlight, "in_flight"},
	{ErrLeaseLost, "lease_lost"},
	{ErrSettled, "settled"},
	{ErrDuplicate, "duplicate"},
	{ErrFull, "full"},
	{ErrUnsupported, "unsupported"},
	{ErrInvalid, "invalid"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
	{ErrUnconfirmed, "unconfirmed"},
	{ErrOutcomeUnknown, "outcome_unknown"},
	{ErrUnavailable, "unavailable"},
}

// errorType names an error by the sentinel it matches. The names are few: each is a time series of its own.
func errorType(err error) string {
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	return "_OTHER"
}
