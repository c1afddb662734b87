package backend

import "time"

// Message is one message of a push. Package delayq has it under the same name. Its zero value is a
// message without content, due at once.
type Message struct {
	// ID names the message: 1 to 255 bytes of UTF-8 without control characters. Empty, package
	// delayq gives it one. While a message of that id is in the queue, a further one is refused
	// with [ErrDuplicate]. A store that lacks [OwnIDs] makes the ids itself: package delayq then
	// returns [ErrUnsupported] for a message that has one.
	ID string

	// Body is up to 16 MiB, any bytes. The queue keeps no reference to it.
	Body []byte

	// Headers are up to 64 KiB in all, with 8 bytes for each. A key is 1 to 255 bytes of UTF-8
	// without control characters and does not begin with "delayq-"; a value is any bytes. They are
	// nil when there are none. A store that lacks [Headers] returns [ErrUnsupported] for any.
	Headers map[string]string

	// Due is when the message may be handed out, from 1970 to 2200, by the store's clock, rounded
	// up to the store's resolution; a time in the past is due at once. Where it is zero, Delay
	// counts from the store's own now, up to a hundred years, so that a wrong clock in the pusher's
	// process does no harm. At most one of the two is set.
	Due   time.Time
	Delay time.Duration

	// UniqueFor, 1 ms to 400 days, keeps the ID taken for that long from the push on, by the
	// store's clock. Until then a further push of the ID is refused with [ErrDuplicate], with
	// UniqueFor or without, also when the message is done, dead or cancelled. A refused push
	// lengthens nothing. It asks for an ID. 0 is off: the ID is free when the message is gone.
	// Package delayq returns [ErrUnsupported] where the store lacks [UniqueWindows].
	UniqueFor time.Duration
}

// DueAt returns when the message is due in a store whose clock shows now: Due, or after Delay.
func (m *Message) DueAt(now time.Time) time.Time { return dueAt(m.Due, m.Delay, now) }

func dueAt(due time.Time, delay time.Duration, now time.Time) time.Time {
	if due.IsZero() {
		return now.Add(delay)
	}
	return due
}

// Delivery is a message in a worker's hands.
type Delivery struct {
	ID      string
	Body    []byte
	Headers map[string]string // nil when there are none
	Due     time.Time         // as the store keeps it, rounded up

	// Attempt is 1 at the first hand-out and rises by one at each further one,
	// also when the worker before died without a word.
	Attempt int

	Token Token     // of the lease
	Until time.Time // the lease's end by the store's clock
}

// Lease returns the lease that settles the delivery.
func (d *Delivery) Lease() Lease { return Lease{ID: d.ID, Token: d.Token} }

// Token distinguishes a lease from every other of its queue. Only the backend that made it can read
// it. No lease has the zero token.
type Token struct{ Hi, Lo uint64 }

// Lease is the right to settle one delivery.
type Lease struct {
	ID    string
	Token Token
}

// Return gives a message back.
type Return struct {
	Lease
	Delay time.Duration // from the store's now; 0 is due at once

	// Untouched says that no handler saw the message: it goes back to its old
	// place in the order, and this hand-out is not counted as an attempt. Delay is 0.
	Untouched bool

	// NewHeaders has Headers replace all headers of the message in the same step; nil or empty
	// leaves it none. Else Headers is not looked at. It does not go with Untouched.
	NewHeaders bool
	Headers    map[string]string
}

// DeadLetterRequest asks for a message to become a dead letter.
type DeadLetterRequest struct {
	Lease
	Reason string
}

// Move gives a scheduled message a new due time; Due and Delay are as in [Message].
type Move struct {
	ID    string
	Due   time.Time
	Delay time.Duration
}

// DueAt returns the new due time in a store whose clock shows now, as [Message.DueAt] does.
func (m *Move) DueAt(now time.Time) time.Time { return dueAt(m.Due, m.Delay, now) }

// Pending is a message that waits: scheduled, or due and not handed out.
type Pending struct {
	// ID is the one that Cancel takes. It is empty where the message gets one only with its first
	// hand-out, as one does that another program has moved along.
	ID string

	Body     []byte
	Headers  map[string]string // nil when there are none
	Due      time.Time         // rounded up by the store; zero where another program has dropped it
	Attempts int               // hand-outs counted so far

	// Err says why the body cannot be read; Body then has the bytes that are there. Only a store
	// that other programs write to has any such message.
	Err error
}

// DeadLetter is a message that failed too often, or that a worker gave up on. It is not handed out
// unless it is redriven.
type DeadLetter struct {
	ID       string
	Body     []byte
	Headers  map[string]string // nil when there are none
	Due      time.Time         // of the last attempt
	Attempts int               // hand-outs counted before it died
	Reason   string            // the last failure, with its stack after a panic
	Died     time.Time         // by the store's clock
}

// Stats counts the messages of a queue. Each is in exactly one of the first four.
type Stats struct {
	Scheduled int64 // not due yet
	Ready     int64 // due and not leased; messages of ended leases count
	InFlight  int64 // leased
	Dead      int64 // dead letters

	// Quarantined counts messages of other programs that cannot be read. It is none of the four;
	// only backends that share queues with other programs have any.
	Quarantined int64

	// HeadDue is the earliest due time among scheduled and ready messages; zero without any.
	HeadDue time.Time
}
