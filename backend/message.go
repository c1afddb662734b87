package backend

import "time"

// Message is what Schedule stores.
type Message struct {
	ID      string // 1 to MaxID bytes
	Body    []byte
	Headers map[string]string // nil when there are none

	// Due is when the message may be handed out. Where it is zero, Delay is
	// added to the store's own clock instead, so that a pusher with a wrong
	// clock does no harm. It is rounded up to the store's resolution.
	Due   time.Time
	Delay time.Duration

	// UniqueFor keeps the id taken for that long from the push on, by the store's clock: 0 for no
	// longer than the message is in the queue, else [MinUnique] to [MaxUnique].
	UniqueFor time.Duration
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

// Lease returns what settles the delivery.
func (d *Delivery) Lease() Lease { return Lease{ID: d.ID, Token: d.Token} }

// Token tells one lease from every other of its queue. It means something to the
// backend that made it and to nobody else. The zero token is never given out.
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

	// NewHeaders has Headers replace all headers of the message in the same step; nil or empty leaves it none. Else Headers is not
	// looked at. It does not go with Untouched.
	NewHeaders bool
	Headers    map[string]string
}

// Burial makes a message a dead letter.
type Burial struct {
	Lease
	Reason string
}

// Move gives a scheduled message a new due time; Due and Delay are as in [Message].
type Move struct {
	ID    string
	Due   time.Time
	Delay time.Duration
}

// DeadLetter is a message that nobody will handle unless it is redriven.
type DeadLetter struct {
	ID       string
	Body     []byte
	Headers  map[string]string // nil when there are none
	Due      time.Time         // of the last attempt
	Attempts int               // hand-outs counted before it died
	Reason   string
	Died     time.Time // by the store's clock
}

// Stats counts the messages of a queue. Each is in exactly one of the first four.
type Stats struct {
	Scheduled int64 // not due yet
	Ready     int64 // due, waiting for a worker; those whose lease ended included
	InFlight  int64 // leased
	Dead      int64 // dead letters

	// Quarantined counts what others wrote and nobody can read. It is none of the four.
	Quarantined int64

	// HeadDue is the earliest due time among scheduled and ready messages; zero
	// without any.
	HeadDue time.Time
}
