package delayq

import (
	"errors"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/consumer"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/valid"
)

// The errors that a store may return, matched with [errors.Is]. Package backend describes each.
var (
	ErrClosed         = backend.ErrClosed         // the queue is closed
	ErrNotFound       = backend.ErrNotFound       // no message of that id, or in another state
	ErrInFlight       = backend.ErrInFlight       // a worker holds the message
	ErrLeaseLost      = backend.ErrLeaseLost      // the lease ended; nothing changed
	ErrDuplicate      = backend.ErrDuplicate      // the first message of that id stays; success to a caller that repeats its push
	ErrFull           = backend.ErrFull           // the store is at its limit; nothing was stored
	ErrUnconfirmed    = backend.ErrUnconfirmed    // stored, but not where a push was told to wait for, as on replicas
	ErrUnavailable    = backend.ErrUnavailable    // the store cannot be reached, for now: try again
	ErrOutcomeUnknown = backend.ErrOutcomeUnknown // it may have happened or not; repeating does no harm, but may store a push without an ID twice
	ErrUnsupported    = backend.ErrUnsupported    // the backend cannot do that; an UnsupportedError
	ErrInvalid        = backend.ErrInvalid        // an argument cannot be used; an InvalidError, nothing changed
	ErrUnknownScheme  = backend.ErrUnknownScheme  // no backend for that URL: forgotten import?
)

// The errors of handlers and of deliveries. No store returns them.
var (
	// ErrExpired is the cause that [OnDead] gets for an expired message. Its text is the reason of
	// the dead letter.
	ErrExpired = errors.New("message expired before it was handed out")

	// ErrSettled says that the delivery was settled before through the same value, so that this
	// call changed nothing. It takes the place of ErrLeaseLost, which a store returns in both
	// cases.
	ErrSettled = lease.ErrSettled

	// ErrDrain says that handlers were still running when a Consume had to end. Their messages are
	// handed out again when their leases end. It is also the cause of the end of the contexts of
	// handlers that run longer than [Drain] allows.
	ErrDrain = consumer.ErrDrain

	// ErrTimeout is the cause of the end of a handler's context when the handler takes longer than
	// [Timeout] allows. The message fails with it, unless the handler returns nil all the same.
	ErrTimeout = consumer.ErrTimeout

	// ErrDrop is for a handler to return, by itself or wrapped: the message failed and is not
	// tried again. It is acknowledged, and the error goes to the log.
	ErrDrop = errors.New("message dropped")

	// ErrDeadLetter is for a handler to return, by itself or wrapped: another attempt would not
	// help, so the message becomes a dead letter at once, whatever attempts are left.
	ErrDeadLetter = errors.New("message cannot be handled")
)

type (
	// InvalidError names a value that cannot be used and the allowed values. It matches
	// [ErrInvalid].
	InvalidError = backend.InvalidError

	// UnsupportedError names a backend and the operation that it lacks. It matches
	// [ErrUnsupported].
	UnsupportedError = backend.UnsupportedError
)

// OpError names the operation that failed, and its queue and message.
type OpError struct {
	Op    string // "push", "receive", …
	Queue string
	ID    string // of the message, where there is one
	Err   error
}

func (e *OpError) Error() string {
	if e == nil || e.Err == nil {
		return "delayq: no error"
	}
	text := "delayq: " + e.Op
	if e.Queue != "" {
		text += " on queue " + valid.Quoted(e.Queue)
	}
	if e.ID != "" {
		text += ", message " + valid.Quoted(e.ID)
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

func opError(op, queue, id string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Queue: queue, ID: id, Err: err}
}

func validLimit(limit int) error { return valid.Within("limit", limit, 1, MaxBatch) }
