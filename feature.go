package delayq

import (
	"fmt"

	"github.com/delayq/delayq/backend"
)

// Feature is something that not every backend can do, for [Require].
type Feature int

// The features. docs/guarantees.md says which backend has which.
const (
	Cancelling       Feature = iota + 1 // Cancel
	Rescheduling                        // Reschedule
	Counting                            // Stats
	Redriving                           // Dead: list, redrive, delete
	Ordering                            // messages come by (due, push order)
	Deduplicating                       // a second push of an id stores nothing
	CountingAttempts                    // Attempt counts every hand-out
	Durability                          // messages survive the process
	OwnIDs                              // a message has the id that its pusher gives it
	Headers                             // a message may have headers
	UniqueWindows                       // UniqueFor keeps an id taken when its message is gone
	Peeking                             // Peek
	Purging                             // Purge
	ChangingHeaders                     // NackHeaders
)

var featureNames = map[Feature]string{
	Cancelling:       "cancelling",
	Rescheduling:     "rescheduling",
	Counting:         "counting messages",
	Redriving:        "dead letters",
	Ordering:         "order by due time",
	Deduplicating:    "deduplication by id",
	CountingAttempts: "counting attempts",
	Durability:       "durable messages",
	OwnIDs:           "the pusher's ids",
	Headers:          "headers",
	UniqueWindows:    "ids that stay taken (UniqueFor)",
	Peeking:          "peeking",
	Purging:          "purging",
	ChangingHeaders:  "new headers at a nack (NackHeaders)",
}

// String returns the feature's name as errors show it.
func (f Feature) String() string {
	if name, ok := featureNames[f]; ok {
		return name
	}
	return fmt.Sprintf("Feature(%d)", int(f))
}

func (q *queue) require(fs []Feature) error {
	for _, f := range fs {
		if !q.Supports(f) {
			return q.unsupported(f.String())
		}
	}
	return nil
}

func (q *queue) Supports(f Feature) bool {
	switch f {
	case Cancelling:
		return q.cancel != nil
	case Rescheduling:
		return q.reschedule != nil
	case Counting:
		return q.inspect != nil
	case Redriving:
		return q.dead != nil
	case Ordering:
		return !q.traits.Unordered
	case Deduplicating:
		return !q.traits.KeepsDuplicates
	case CountingAttempts:
		return !q.traits.UncountedAttempts
	case Durability:
		return q.traits.Durability == backend.Durable
	case OwnIDs:
		return !q.traits.StoreMakesIDs
	case Headers:
		return !q.traits.NoHeaders
	case UniqueWindows:
		return !q.traits.NoUniqueFor && !q.traits.StoreMakesIDs
	case Peeking:
		return q.peek != nil
	case Purging:
		return q.purge != nil
	case ChangingHeaders:
		return !q.traits.NoHeaders && !q.traits.FixedHeaders
	}
	return false
}
