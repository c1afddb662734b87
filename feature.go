package delayq

import (
	"cmp"
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// Feature is an operation or a promise that not every backend has, for [Require] and
// [Queue.Supports].
type Feature = backend.Feature

// The features. docs/guarantees.md says which backend has which.
const (
	Cancelling        = backend.Cancelling        // Cancel
	Rescheduling      = backend.Rescheduling      // Reschedule
	Counting          = backend.Counting          // Stats
	Redriving         = backend.Redriving         // Dead: list, redrive, delete
	Ordering          = backend.Ordering          // messages come by (due, push order)
	Deduplicating     = backend.Deduplicating     // a second push of an id stores nothing
	CountingAttempts  = backend.CountingAttempts  // Attempt counts every hand-out
	Durability        = backend.Durability        // messages survive the process
	OwnIDs            = backend.OwnIDs            // a message has the id that its pusher gives it
	KeepingHeaders    = backend.KeepingHeaders    // a message may have headers
	UniqueWindows     = backend.UniqueWindows     // UniqueFor keeps an id taken when its message is gone
	Peeking           = backend.Peeking           // Peek
	Purging           = backend.Purging           // Purge
	ChangingHeaders   = backend.ChangingHeaders   // NackHeaders
	Pausing           = backend.Pausing           // PauseAll, ResumeAll
	ExactAttempts     = backend.ExactAttempts     // Attempt rises by hand-outs alone
	SingleCopy        = backend.SingleCopy        // an interrupted nack, dead or redrive leaves one message
	CancelNotFound    = backend.CancelNotFound    // Cancel returns ErrNotFound for a message that does not exist
	Getting           = backend.Getting           // Get, and a text of ErrDuplicate that says the state
	Replacing         = backend.Replacing         // Replace, MaxWait
	CountingScheduled = backend.CountingScheduled // Stats counts every message, and none is Unknown
	ReplacingInFlight = backend.ReplacingInFlight // ReplaceAfterInFlight
	Transactions      = backend.Transactions      // InTx
	CountingActivity  = backend.CountingActivity  // Stats counts pushes, acks and lateness
)

func (q *queue) Supports(f Feature) bool { return q.traits.Supports(f) }

// lacks returns the error of an operation whose feature the backend does not have, else nil.
func (q *queue) lacks(f Feature, op string) error { return valid.Feature(f, op, q.traits) }

// call makes a call of the store that needs a feature, unless an argument is invalid.
func (q *queue) call(ctx context.Context, f Feature, op, id string, invalid error, call func() error) error {
	err := cmp.Or(q.lacks(f, op), valid.Context(ctx), invalid)
	if err == nil {
		err = call()
	}
	return q.fail(op, id, err)
}
