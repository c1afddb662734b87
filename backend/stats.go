package backend

import (
	"slices"
	"time"
)

// Unknown is the value of a count or a time of [Stats] that the store cannot tell.
const Unknown = -1

// Stats counts the messages of a queue. Each is in exactly one of the first four. A store that
// lacks [CountingScheduled] returns [Unknown] for some: see [Traits.Lacks].
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

	// Activity counts pushes, acks, and how late messages came. A store that lacks [CountingActivity]
	// returns [UnknownActivity].
	Activity Activity

	// Paused says that PauseAll holds the queue's messages back, and PausedUntil how long; it is
	// zero for a pause without an end.
	Paused      bool
	PausedUntil time.Time

	// OldestReady is how long ago the ready message was due that was due first, by the store's
	// clock. It is 0 when no message is ready.
	OldestReady time.Duration

	// Due counts the scheduled messages by how soon they are due.
	Due DueHistogram

	// DueEstimated says that Due is in part an estimate from a random sample of the messages: the
	// sum is exact, and so are the first intervals as long as they have few messages.
	DueEstimated bool
}

// DueHistogram counts scheduled messages by how long it is, by the store's clock, until they are
// due. The first count is of those due within the first of [DueBounds]. Each further one is of
// those due later than the bound before and within its own. The last is of those due later than all
// bounds. The sum is [Stats.Scheduled].
type DueHistogram [len(dueBounds) + 1]int64

var dueBounds = [...]time.Duration{
	time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// DueBounds returns the bounds of a [DueHistogram]: a minute, 10 minutes, an hour, 6 hours, a day,
// a week.
func DueBounds() []time.Duration { return slices.Clone(dueBounds[:]) }

// DueLabels returns short names of the intervals of a [DueHistogram], as metrics and the command
// line show them: "1m", "10m", "1h", "6h", "1d", "1w", "later".
func DueLabels() []string { return []string{"1m", "10m", "1h", "6h", "1d", "1w", "later"} }

// DueInterval returns the index in a [DueHistogram] of a message that is due after so long a wait.
func DueInterval(wait time.Duration) int {
	for i, bound := range dueBounds {
		if wait <= bound {
			return i
		}
	}
	return len(dueBounds)
}

// CountWaiting adds a message that waits, for a store that visits all of them: with its due time,
// and the time that the store's clock shows.
func (s *Stats) CountWaiting(due, now time.Time) {
	if s.HeadDue.IsZero() || due.Before(s.HeadDue) {
		s.HeadDue = due
	}
	if wait := due.Sub(now); wait > 0 {
		s.Scheduled++
		s.Due[DueInterval(wait)]++
	} else {
		s.Ready++
		s.OldestReady = max(s.OldestReady, -wait)
	}
}
