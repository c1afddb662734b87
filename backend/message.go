package backend

import (
	"fmt"
	"time"
)

// Message is one message of a push. Package delayq has it under the same name. Its zero value is a
// message without content, due at once.
type Message struct {
	// ID names the message: 1 to 255 bytes of UTF-8 without control characters. If it is empty,
	// package delayq makes an id. While a message of that id is in the queue, a further push of it
	// returns [ErrDuplicate]. A store that lacks [OwnIDs] makes the ids itself: package delayq then
	// returns [ErrUnsupported] for a message with an ID.
	ID string

	// Body is up to 16 MiB, any bytes. The queue keeps no reference to it.
	Body []byte

	// Headers are up to 64 KiB in all, with 8 bytes for each. A key is 1 to 255 bytes of UTF-8
	// without control characters and does not begin with "delayq-"; a value is any bytes. They are
	// nil when there are none. A store that lacks [KeepingHeaders] returns [ErrUnsupported] for any.
	Headers map[string]string

	// Due is when the message may be handed out, from 1970 to 2200, by the store's clock, rounded
	// up to the store's resolution; a time in the past is due at once. Where it is zero, Delay
	// counts from the store's own now, up to a hundred years, so that a wrong clock in the pusher's
	// process does no harm. At most one of the two is set.
	Due   time.Time
	Delay time.Duration

	// Spread, 0 to a hundred years, makes the message due at a random time up to that much later,
	// within the limits of Due and Delay. Package delayq adds the random part to Due or Delay: it is
	// 0 in the messages that a store is given.
	Spread time.Duration

	// UniqueFor, 1 ms to 400 days, keeps the ID taken for that long from the push on, by the
	// store's clock. Until then a further push of the ID returns [ErrDuplicate], with UniqueFor or
	// without, also when the message is done, dead or cancelled. A rejected push does not extend
	// that time. UniqueFor needs an ID. With 0 the ID is free when the message is gone. Package
	// delayq returns [ErrUnsupported] where the store lacks [UniqueWindows].
	UniqueFor time.Duration

	// Replace makes the push replace a message of the ID that waits, scheduled or ready. Body,
	// headers and due time become the new ones in one step, and attempts count anew. Among messages
	// of one due time, the message has the place of this push. If no message of the ID waits, it is
	// an ordinary push. One in flight gets [ErrInFlight], unless AfterInFlight is set; one that is dead, or gone while UniqueFor
	// keeps the ID, gets [ErrDuplicate]. Of several in one call the last wins. Replace needs an ID,
	// and cannot be combined with UniqueFor. Package delayq returns [ErrUnsupported] where the
	// store lacks [Replacing].
	Replace bool

	// MaxWait, 1 ms to a hundred years, bounds how far Replace moves the due time: to the first
	// push plus MaxWait at most, rounded up to the store's resolution. The first push is the one
	// that found no message of the ID waiting, or one that was pushed without MaxWait. Its time, by
	// the store's clock, travels with the message: see [FirstPushHeader]. MaxWait needs Replace. 0
	// sets no bound.
	MaxWait time.Duration

	// AfterInFlight makes Replace take a message of the ID that is in flight too. Body, headers and
	// due time in the store become the new ones at once, and the worker keeps its lease on what it
	// was given. When that lease ends, by Ack, Nack, Dead or in time, the message waits as one that
	// was just pushed, until its new due time. What was in flight is gone then: it is not retried,
	// and is no dead letter. MaxWait counts from the first such push of a lease. It needs Replace.
	// Package delayq returns [ErrUnsupported] where the store lacks [ReplacingInFlight].
	AfterInFlight bool

	// Limits are the message's own limits, nil for none. Package delayq stores them as a header,
	// and returns [ErrUnsupported] where the store lacks [KeepingHeaders]. The field is nil in
	// every message that a store gets.
	Limits *Limits
}

// Limits are limits of one message, stored with it. Every consumer keeps them, whatever its own
// options say. The zero value of a field sets no limit.
type Limits struct {
	// Attempts, up to 2^30, replaces the consumer's MaxAttempts. Package delayq returns
	// [ErrUnsupported] where the store lacks [CountingAttempts].
	Attempts int

	// HandlerTimeout, 1 ms to 24 h, replaces the consumer's Timeout.
	HandlerTimeout time.Duration

	// ExpiresAfter, 1 ms to a hundred years, is how long after its due time the message may be
	// handed out. A retry, a reschedule or a redrive sets a new due time.
	ExpiresAfter time.Duration

	// Expires, from 1970 to 2200, is the time by the store's clock until which the message may be
	// handed out. Where the message has a Due, Expires is not before it.
	Expires time.Time

	// DeadLetterExpired makes an expired message a dead letter. Without it an expired message is
	// deleted. It needs ExpiresAfter or Expires.
	DeadLetterExpired bool
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

	// Attempt is 1 at the first hand-out and rises by one at each further one, also when the worker
	// before died.
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

	// NewHeaders makes Headers replace all headers of the message in the same step; nil or empty
	// Headers leave it without any. If NewHeaders is false, Headers is ignored. It cannot be
	// combined with Untouched.
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

// Retention bounds the dead letters that [Queue.TrimDead] leaves. Zero is no bound.
type Retention struct {
	MaxAge   time.Duration // a letter goes that long after its death, by the store's clock
	MaxCount int           // of more letters, the oldest go
}

// Pause says when a pause of a queue ends. Its zero value has no end but [Queue.ResumeAll].
type Pause struct {
	// Until is a time of the store's clock, from 1970 to 2200. Where it is zero, For counts from
	// the store's own now, up to a hundred years. At most one of the two is set.
	Until time.Time
	For   time.Duration
}

// EndAt returns when the pause ends in a store whose clock shows now; zero for no end.
func (p Pause) EndAt(now time.Time) time.Time {
	if p == (Pause{}) {
		return time.Time{}
	}
	return dueAt(p.Until, p.For, now)
}

// State is where a message is in its life.
type State int

// The states. A message in the queue has one of the first four.
const (
	StateScheduled State = iota + 1 // not due yet
	StateReady                      // due and not leased, also where a lease has ended
	StateInFlight                   // leased
	StateDead                       // a dead letter
	StateDone                       // acknowledged, cancelled or deleted, and UniqueFor keeps its id
)

var stateNames = [...]string{
	StateScheduled: "scheduled", StateReady: "ready", StateInFlight: "in flight", StateDead: "dead", StateDone: "done",
}

// String returns the state in lower case, as "in flight".
func (s State) String() string {
	if s < StateScheduled || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// MessageInfo is a message as the queue shows it. Fields that do not apply to its state are zero.
// For a message that is done, only ID, State and UniqueUntil are known.
type MessageInfo struct {
	// ID is the id that Cancel takes. It is empty for a message that gets an id only with its first
	// hand-out, such as one that another program has moved.
	ID    string
	State State

	Body     []byte
	Headers  map[string]string // nil when there are none
	Due      time.Time         // rounded up by the store; zero where another program has dropped it
	Attempts int               // hand-outs counted so far; in flight, that of the lease included

	LeaseUntil time.Time // in flight: the end of the lease, by the store's clock

	Reason string    // dead: the last failure, with its stack after a panic
	Died   time.Time // dead: when, by the store's clock

	// UniqueUntil is the end of the window of UniqueFor, where one lasts. Only Get fills it.
	UniqueUntil time.Time

	// Err says why the body cannot be read; Body then has the raw bytes. This happens only in a
	// store that other programs write to.
	Err error

	// Limits are the message's own, nil for none. Package delayq sets them.
	Limits *Limits
}

// Pending is a message that waits: scheduled or ready.
type Pending = MessageInfo

// DeadLetter is a message that failed too often, or that a worker gave up on. It is not handed out
// unless it is redriven. Its Due is that of the last attempt.
type DeadLetter = MessageInfo
