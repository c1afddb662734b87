package backend

import (
	"errors"
	"fmt"
	"time"
)

// The sentinel errors that a backend returns. They are matched with [errors.Is]; package delayq
// re-exports each. The outcome of one message wraps at most one of them. Only ErrUnavailable and
// ErrOutcomeUnknown may come together.
var (
	// ErrClosed is returned by every call on a closed queue or backend.
	ErrClosed = errors.New("closed")

	// ErrNotFound says that the store has no message of that id in a state the
	// operation applies to: never pushed, done, cancelled, or dead (for Cancel and
	// Reschedule) or not dead (for Redrive and Delete).
	ErrNotFound = errors.New("no such message")

	// ErrInFlight says that a worker holds the message, so that it can no
	// longer be cancelled, moved or replaced.
	ErrInFlight = errors.New("message is in flight")

	// ErrLeaseLost says that the delivery is no longer the caller's: its lease
	// ended, or it was settled before. Nothing was changed.
	ErrLeaseLost = errors.New("lease lost")

	// ErrDuplicate is returned for an id that is in the queue already, or that UniqueFor still
	// keeps. The first message stays unchanged. Treat ErrDuplicate as success when you repeat a
	// push. A message in flight counts too: a handler that pushes its own message's id gets this
	// error, and nothing is stored. The text says in which state the first message is, where the
	// store can look for it: see [Duplicate].
	ErrDuplicate = errors.New("this id is taken")

	// ErrFull says that the store has reached its limit. Nothing was stored.
	ErrFull = errors.New("queue is full")

	// ErrUnconfirmed is returned by a push that waits for replicas or disks. The store has the
	// message, but not all replicas or disks have confirmed it in time. The message may be lost
	// with the store. Pushing it again under its id waits for them again, and returns ErrDuplicate
	// when they have it.
	ErrUnconfirmed = errors.New("stored, but not confirmed")

	// ErrUnavailable says that the store cannot be reached, or is not ready: a refused or broken
	// connection, a server that is starting or moving its data. It is temporary: try again. Unless
	// the error also matches [ErrOutcomeUnknown], nothing was changed.
	ErrUnavailable = errors.New("store unavailable")

	// ErrOutcomeUnknown says that the operation may have happened or not: the connection broke, or
	// the context ended, before the store replied. Repeating the call does no harm.
	ErrOutcomeUnknown = errors.New("outcome unknown")

	// ErrUnsupported says that this backend cannot do the operation: see [Traits.Lacks]. Package
	// delayq returns an [UnsupportedError], which names backend and operation.
	ErrUnsupported = errors.New("not supported")

	// ErrInvalid says that an argument cannot be used. The error is an
	// [InvalidError], and nothing was changed.
	ErrInvalid = errors.New("invalid")

	// ErrUnknownScheme says that no backend is registered for a URL's scheme.
	ErrUnknownScheme = errors.New("unknown URL scheme")
)

// InvalidError names a value that cannot be used and the allowed values. It matches [ErrInvalid].
type InvalidError struct {
	What    string // the argument: "delay", `header "x"`
	Value   string // as given, shortened
	Allowed string // the allowed values
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("invalid %s %s: allowed is %s", e.What, e.Value, e.Allowed)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Invalid returns an [InvalidError]. Strings are quoted, long ones cut.
func Invalid(what string, value any, allowed string) error {
	return &InvalidError{What: what, Value: show(value), Allowed: allowed}
}

// Duplicate returns an [ErrDuplicate] whose text says in which state the message with the id is:
// scheduled, due or not, in flight, dead or done.
func Duplicate(s State) error {
	switch s {
	case StateDone:
		return fmt.Errorf("%w: its message is done, and UniqueFor keeps the id", ErrDuplicate)
	case StateReady:
		s = StateScheduled
		fallthrough
	default:
		return fmt.Errorf("%w: its message is %v", ErrDuplicate, s)
	}
}

const shown = 64

func show(value any) string {
	switch v := value.(type) {
	case time.Time: // its own form has the reading of the monotonic clock
		return v.Format(time.RFC3339Nano)
	case string:
		if len(v) > shown {
			return fmt.Sprintf("%q… (%d bytes)", v[:shown], len(v))
		}
		return fmt.Sprintf("%q", v)
	default:
		return fmt.Sprint(value)
	}
}

// UnsupportedError names a backend and the missing operation. It matches [ErrUnsupported].
type UnsupportedError struct {
	Backend string
	Op      string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("backend %s does not support %s", e.Backend, e.Op)
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// FailAll is the outcome of a call on n messages that failed as a whole.
func FailAll(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Each calls do for each of n messages, in order, and returns the outcomes. It returns nil when all
// succeeded.
func Each(n int, do func(i int) error) []error {
	var errs []error
	for i := range n {
		if err := do(i); err != nil {
			if errs == nil {
				errs = make([]error, n)
			}
			errs[i] = err
		}
	}
	return errs
}
