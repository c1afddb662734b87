package backend

import (
	"context"
	"time"
)

// Pending is a message that waits: scheduled, or due and not handed out.
type Pending struct {
	// ID is what Cancel takes. It is empty where the message gets one only with its first hand-out, as
	// one does that another program has moved along.
	ID string

	Body     []byte
	Headers  map[string]string // nil when there are none
	Due      time.Time         // as the store keeps it, rounded up; zero where another program has dropped it
	Attempts int               // hand-outs counted so far

	// Err says why nobody can read the body; Body then has the bytes that are there. Only a store that
	// others write to has any such message.
	Err error
}

// Peeker is a [Queue] that can show what waits.
type Peeker interface {
	// Peek returns up to limit messages that wait, by (due, push order) unless [Traits.Unordered], from the
	// cursor on: "" starts, and a returned cursor of "" says that there are no more. A page may be shorter
	// than limit, or empty, and have more behind it. Messages in flight and dead letters are left out; one whose
	// lease ended waits again. A cursor that no Peek returned answers an [InvalidError].
	//
	// It changes nothing: no attempt is counted, nobody is kept from a message, and the caller owns what
	// it gets. It is a look at what goes on changing. Of the messages that are not due yet, those that
	// come, go or move while pages are read make it skip none of the others.
	Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error)
}

// Purger is a [Queue] that can be emptied.
type Purger interface {
	// Purge deletes all that the store keeps of the queue: messages that wait, messages in flight, dead letters, what
	// is quarantined, and ids that stay taken. Leases end with that: who settles one gets [ErrLeaseLost]. What was
	// pushed before the call is gone when it returns nil; what is pushed meanwhile may be. Handles go on working, as
	// on a queue that was never used.
	//
	// It returns how many messages it deleted, in whatever state they were. After an error that is how many
	// were deleted before it, as far as is known; so is it where a lost reply made it try again.
	Purge(ctx context.Context) (removed int64, err error)
}
