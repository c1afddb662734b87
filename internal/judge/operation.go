package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/delayq/delayq/backend"
)

// Op is what a call does.
type Op uint8

// The operations of backend.Queue.
const (
	Push Op = iota // Schedule
	Receive
	Ack
	Nack
	Extend
	Dead
	Cancel
	Reschedule
	Redrive
	DeleteDead
	Listed // a dead letter, in the last ListDead of a test run
	Close  // of a handle; it has no items
	Misuse // a call with bad input
	Stats  // it has no items
	Get
	PauseAll
	ResumeAll
)

var opNames = []string{
	"push", "receive", "ack", "nack", "extend", "dead", "cancel", "reschedule", "redrive", "delete-dead", "listed", "close",
	"misuse", "stats", "get", "pause-all", "resume-all",
}

func (o Op) String() string { return opNames[o] }

// MarshalText writes the name.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name.
func (o *Op) UnmarshalText(text []byte) error {
	i := slices.Index(opNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown operation %q", text)
	}
	*o = Op(i)
	return nil
}

// Outcome is what a call returned for one message.
type Outcome uint8

// Outcomes. Only the first two change anything in the store.
const (
	Unknown Outcome = iota // it may have happened
	OK
	Duplicate
	NotFound
	InFlight
	LeaseLost
	Full
	Refused // for another reason that changes nothing
)

var outcomeNames = []string{"unknown", "ok", "duplicate", "not-found", "in-flight", "lease-lost", "full", "refused"}

func (o Outcome) String() string { return outcomeNames[o] }

// MarshalText writes the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomeNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown outcome %q", text)
	}
	*o = Outcome(i)
	return nil
}

// may reports whether the call may have changed something.
func (o Outcome) may() bool { return o <= OK }

var definite = []struct {
	err error
	out Outcome
}{
	{backend.ErrDuplicate, Duplicate}, {backend.ErrNotFound, NotFound}, {backend.ErrInFlight, InFlight},
	{backend.ErrLeaseLost, LeaseLost}, {backend.ErrFull, Full}, {backend.ErrUnsupported, Refused}, {backend.ErrInvalid, Refused},
}

// OutcomeOf returns the outcome that an error stands for. A context that ended leaves it unknown.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OK
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Unknown
	}
	for _, d := range definite {
		if errors.Is(err, d.err) {
			return d.out
		}
	}
	return Unknown
}

// SetOutcomes sets the outcomes of a call's items from the errors of a batch, nil for none, and
// returns the first error whose outcome is unknown.
func (c *Call) SetOutcomes(errs []error) (unknown error) {
	for i := range c.Items {
		var err error
		if errs != nil {
			err = errs[i]
		}
		c.Items[i].Out = OutcomeOf(err)
		if c.Items[i].Out == Unknown && unknown == nil {
			unknown = err
		}
	}
	return unknown
}
