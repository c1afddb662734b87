package chaos

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
	Push Op = iota
	Take    // Receive
	Ack
	Nack
	Extend
	Bury // Dead
	Cancel
	Move // Reschedule
	Redrive
	Delete // DeleteDead
	Seen   // a dead letter, in the last listing
	Close  // of a handle; it has no items
	Wrong  // with input that cannot be used
	Count  // Stats; it has no items
)

var opNames = []string{"push", "take", "ack", "nack", "extend", "bury", "cancel", "move", "redrive", "delete", "seen", "close", "wrong", "count"}

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

// Outcome is what became of one message in a call.
type Outcome uint8

// Outcomes. Only of the first two does anything change in the store.
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

// outcomeOf sorts an error. A context that ended leaves open what happened.
func outcomeOf(err error) Outcome {
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
