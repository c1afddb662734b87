package backend

import "time"

// Traits are the promises that are not a method. The zero value of each field is
// the strictest promise, so that a backend says openly what it cannot keep, and
// package conformance holds it to the rest.
type Traits struct {
	// Name is the package's name, as errors and logs show it.
	Name string

	// Durability says what a stored message survives.
	Durability Durability

	// Unordered declares that messages may be handed out in an order other
	// than (due, push order).
	Unordered bool

	// Resolution is the grain of due times and of the ends of leases: they are rounded
	// up to a multiple of it. 0 is the nanosecond.
	Resolution time.Duration

	// Sweep bounds how late the store may notice by itself what no wake-up tells
	// it: a lease that ended, a head that another process pushed. 0 is at once. It
	// delays hand-outs and counts and never fencing: a lease is lost when it ends.
	Sweep time.Duration

	// MaxDelay is the longest delay; 0 is the portable [MaxDelay]. A due time farther away than
	// that, which only the store's clock can tell, is for the backend to refuse with an
	// [InvalidError].
	MaxDelay time.Duration

	// MaxBody is the largest body in bytes; 0 is the portable [MaxBody].
	MaxBody int

	// StoreMakesIDs declares that a message has an id of the store's making
	// rather than the pusher's. Schedule writes it into each message of its argument
	// whose outcome is nil, and takes no notice of the id that was there. The id is the
	// message's from then on: deliveries, Cancel and dead letters know it by that one.
	StoreMakesIDs bool

	// NoHeaders declares that a message has no headers: Schedule answers one that has
	// some with [ErrUnsupported].
	NoHeaders bool

	// FixedHeaders declares that Nack cannot change headers. Nack is then given no message with NewHeaders, nor with NoHeaders: package
	// delayq answers it with [ErrUnsupported].
	FixedHeaders bool

	// KeepsDuplicates declares that a second push of an id stores a second
	// message.
	KeepsDuplicates bool

	// NoUniqueFor declares that ids are not kept beyond their messages. Schedule is then given no
	// message with UniqueFor: package delayq answers its push with [ErrUnsupported].
	NoUniqueFor bool

	// UncountedAttempts declares that Attempt may stay 1 on a redelivery.
	UncountedAttempts bool

	// RecountsAttempts declares that Attempt may also rise without a hand-out where a connection breaks: a
	// message that was on its way to a worker then counts as handed out. Without such a fault
	// the first hand-out is attempt 1.
	RecountsAttempts bool

	// CopiesMessages declares that Nack, Dead and Redrive store a copy of the message and then delete the one
	// that was there: a crash, or a context that ends between the two, leaves both.
	CopiesMessages bool

	// CancelsUnseen declares that Cancel cannot look for a message. It remembers the id: the message stays in the store
	// until it is due and is then left out. For an id that is not there, or has not been for a while, the outcome is nil.
	CancelsUnseen bool

	// Leases says where a lease is kept.
	Leases LeaseKeeper

	// ForeignNames declares that queues are named by somebody else's rules, so
	// that the portable ones for names do not apply.
	ForeignNames bool
}

// Durability says what a stored message survives.
type Durability int

const (
	// Durable messages survive every worker, and the store's own restart as far
	// as the store is set up to persist.
	Durable Durability = iota
	// InProcess messages are lost with the process that holds them.
	InProcess
)

// LeaseKeeper says who remembers a lease.
type LeaseKeeper int

const (
	// InStore leases are kept by the store and end on its clock.
	InStore LeaseKeeper = iota
	// InConnection leases are timers of the handle that took them. They end early when its
	// connection breaks, and with Close. A process that stands still, or is cut off, keeps its
	// messages until the store gives its connection up, however short the lease: RabbitMQ does so after
	// two to three heartbeats, 20 to 30 seconds.
	InConnection
)
