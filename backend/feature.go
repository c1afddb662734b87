package backend

import "fmt"

// Feature is a promise that not every backend keeps. [Traits.Lacks] has the features that a backend
// lacks.
type Feature int

// The features. Each is kept unless [Traits.Lacks] has it.
const (
	Cancelling       Feature = iota + 1 // Cancel
	Rescheduling                        // Reschedule
	Counting                            // Stats
	Redriving                           // dead letters: list, redrive, delete, trim
	Ordering                            // messages come by (due, push order)
	Deduplicating                       // a second push of an id stores nothing
	CountingAttempts                    // Attempt counts every hand-out
	Durability                          // messages survive the process that pushed them
	OwnIDs                              // a message has the id that its pusher gives it
	KeepingHeaders                      // a message may have headers
	UniqueWindows                       // UniqueFor keeps an id taken when its message is gone
	Peeking                             // Peek
	Purging                             // Purge
	ChangingHeaders                     // Nack may replace a message's headers
	Pausing                             // PauseAll and ResumeAll

	// ExactAttempts: Attempt rises by hand-outs alone. Without it, a connection that breaks may
	// also count messages that were on their way to a worker. Without such a fault the first
	// hand-out is attempt 1 on every backend.
	ExactAttempts

	// SingleCopy: a Nack, Dead or Redrive that is interrupted, by a crash or by the end of its
	// context, leaves one copy of the message. Without it there may be two.
	SingleCopy

	// CancelNotFound: Cancel returns ErrNotFound for an id that is not there. Without it Cancel
	// returns nil for such an id, and a cancelled message takes up room until it is due.
	CancelNotFound

	Getting   // Get, and a text of ErrDuplicate that says the state
	Replacing // a push with Replace replaces the message of its id
	// CountingScheduled: Stats counts all messages. Without it, Stats returns [Unknown] for the
	// counts that the store does not know.
	CountingScheduled

	ReplacingInFlight // AfterInFlight: Replace takes a message in flight when its lease ends
	Transactions      // InTx: calls that are part of the caller's own transaction of the store

	CountingActivity // Stats counts pushes, acks and lateness
)

// Headers is the old name of KeepingHeaders.
//
// Deprecated: use KeepingHeaders.
const Headers = KeepingHeaders

// features is the one table of all features. A backend that lacks a feature also lacks those that
// it implies.
var features = [...]struct {
	name    string    // as errors show it
	verbs   []string  // the methods of Queue that it covers
	implies []Feature // features that make no sense without it
}{
	Cancelling:       {"cancelling", []string{"Cancel"}, []Feature{CancelNotFound}},
	Rescheduling:     {"rescheduling", []string{"Reschedule"}, nil},
	Counting:         {"counting messages", []string{"Stats"}, []Feature{CountingScheduled, CountingActivity}},
	Redriving:        {"dead letters", []string{"ListDead", "ListDeadIDs", "Redrive", "DeleteDead", "TrimDead"}, nil},
	Ordering:         {"order by due time", nil, nil},
	Deduplicating:    {"deduplication by id", nil, []Feature{Replacing}},
	CountingAttempts: {"counting attempts", nil, nil},
	Durability:       {"durable messages", nil, nil},
	OwnIDs:           {"the pusher's ids", nil, []Feature{UniqueWindows, Replacing}},
	KeepingHeaders:   {"headers", nil, []Feature{ChangingHeaders, Replacing}},
	UniqueWindows:    {"ids that stay taken (UniqueFor)", nil, nil},
	Peeking:          {"peeking", []string{"Peek"}, nil},
	Purging:          {"purging", []string{"Purge"}, nil},
	ChangingHeaders:  {"new headers at a nack (NackHeaders)", nil, nil},
	Pausing:          {"pausing for all processes", []string{"PauseAll", "ResumeAll"}, nil},
	ExactAttempts:    {"exact attempts", nil, nil},
	SingleCopy:       {"a single copy after an interrupted call", nil, nil},
	CancelNotFound:   {"ErrNotFound for cancelling an unknown id", nil, nil},
	Getting:          {"getting messages by id", []string{"Get"}, nil},
	Replacing:        {"replacing messages (Replace)", nil, []Feature{ReplacingInFlight}},

	CountingScheduled: {"counting scheduled messages", nil, nil},
	ReplacingInFlight: {"replacing messages in flight (ReplaceAfterInFlight)", nil, nil},
	Transactions:      {"calls in the caller's transaction (InTx)", []string{"InTx"}, nil},

	CountingActivity: {"counting pushes, acks and lateness", nil, nil},
}

// Features returns all features.
func Features() []Feature {
	fs := make([]Feature, 0, len(features)-1)
	for f := Feature(1); f.known(); f++ {
		fs = append(fs, f)
	}
	return fs
}

func (f Feature) known() bool { return f > 0 && int(f) < len(features) }

// String returns the feature's name as errors show it.
func (f Feature) String() string {
	if !f.known() {
		return fmt.Sprintf("Feature(%d)", int(f))
	}
	return features[f].name
}

// Verbs returns the names of the methods of [Queue] that the feature covers, none for a feature
// that is not a method.
func (f Feature) Verbs() []string {
	if !f.known() {
		return nil
	}
	return features[f].verbs
}

// FeatureSet is a set of features. The zero value is empty. It can be compared with ==.
type FeatureSet uint32

// Lacking returns the set of the features and of those that they imply: without [Cancelling] there
// is no [CancelNotFound], without [OwnIDs] no [UniqueWindows], without [KeepingHeaders] no
// [ChangingHeaders], without [Counting] no [CountingScheduled] and no [CountingActivity]; and
// without [OwnIDs], [KeepingHeaders] or [Deduplicating] no [Replacing]; and without that no
// [ReplacingInFlight].
func Lacking(fs ...Feature) FeatureSet { return FeatureSet(0).With(fs...) }

// With returns the set with more features in it, and those that they imply.
func (s FeatureSet) With(fs ...Feature) FeatureSet {
	for _, f := range fs {
		if f.known() {
			s |= 1 << f
			s = s.With(features[f].implies...)
		}
	}
	return s
}

// Has tells whether the feature is in the set.
func (s FeatureSet) Has(f Feature) bool { return f.known() && s&(1<<f) != 0 }
