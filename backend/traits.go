package backend

import "time"

// Traits are a store's promises. The zero value of each field is the strictest promise, so that a
// backend declares promises that it cannot keep, and package conformance checks the rest.
type Traits struct {
	// Name is the package's name, as errors and logs show it.
	Name string

	// Lacks is the set of features that the backend does not have. A method of [Queue] that belongs
	// to one of them returns [ErrUnsupported] and changes nothing. For features that are not a
	// method:
	//
	//   - without [OwnIDs], a message has an id of the store's making. Schedule ignores the id that
	//     is there and writes the store's into each message of its argument whose outcome is nil.
	//     Deliveries, Cancel and dead letters use that one.
	//   - without [KeepingHeaders], Schedule returns [ErrUnsupported] for a message that has some.
	//   - without [ChangingHeaders], Nack is given no message with NewHeaders: package delayq
	//     refuses it before.
	//   - without [UniqueWindows], Schedule is given no message with UniqueFor, likewise.
	//   - without [Replacing], Schedule is given no message with Replace, likewise.
	//   - without [ReplacingInFlight], Schedule is given no message with AfterInFlight, likewise.
	//   - without [Deduplicating], a second push of an id stores a second message.
	//   - without [CountingScheduled], Stats returns [Unknown] for Scheduled, OldestReady and each
	//     count of Due, and no HeadDue. It may return [Unknown] for InFlight and Dead.
	//   - without [CountingActivity], the Activity of Stats is [UnknownActivity].
	//   - without [CountingAttempts], Attempt may stay 1 on a redelivery.
	Lacks FeatureSet

	// Resolution is the grain of due times and of the ends of leases: they are rounded up to a
	// multiple of it. 0 is the nanosecond.
	Resolution time.Duration

	// Disorder is by how much due times may be out of order where [Ordering] is lacking: one worker
	// that takes one message at a time gets a message before all that are due later by more, unless
	// wake-ups are lost or a part of the store replies slowly. 0 is no bound.
	Disorder time.Duration

	// Sweep bounds how late the store may notice events without a wake-up: a lease that ended, a
	// head that another process pushed. 0 is at once. It delays hand-outs and counts and never
	// fencing: a lease is lost when it ends.
	Sweep time.Duration

	// MaxDelay is the longest delay; 0 is the portable [MaxDelay]. A due time farther away than
	// that can be told by the store's clock alone, and the backend refuses it with an
	// [InvalidError].
	MaxDelay time.Duration

	// MaxBody is the largest body in bytes; 0 is the portable [MaxBody].
	MaxBody int

	// Leases says where a lease is kept.
	Leases LeaseKeeper

	// Calls says what a call costs the store. Package delayq combines the single pushes, acks and
	// nacks of concurrent callers by it.
	Calls CallCost

	// AnyName declares that a queue may have any name of 1 to [MaxName] bytes, since other programs
	// name the store's queues by their own rules. The portable rules allow letters, digits and
	// "-_.:" alone.
	AnyName bool
}

// Supports tells whether the backend has the feature. It is false for a number that is no feature.
func (t Traits) Supports(f Feature) bool { return f.known() && !t.Lacks.Has(f) }

// CallCost says what a call costs a store.
type CallCost int

const (
	// RoundTrip calls cost a round trip. Callers share one, and do not wait long for those of
	// others.
	RoundTrip CallCost = iota
	// Transaction calls cost the store a transaction too, such as a flush of its log. Few large ones
	// are faster than many small ones.
	Transaction
	// NoRoundTrip calls share nothing: the store is in this process, or combines calls itself.
	NoRoundTrip
)

// LeaseKeeper says where a lease is kept.
type LeaseKeeper int

const (
	// InStore leases are kept by the store and end on its clock.
	InStore LeaseKeeper = iota
	// InConnection leases are timers of the handle that took them. They end early when its
	// connection breaks, and with Close. A process that is stopped, or cut off, keeps its messages
	// until the store closes its connection, however short the lease: RabbitMQ does so after two to
	// three heartbeats, 20 to 30 seconds.
	InConnection
)
