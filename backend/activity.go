package backend

import (
	"math"
	"slices"
	"time"
)

// Activity counts what all handles of all processes have done with the messages of a queue. The
// difference of two is what was done between them: rates, and how late messages came.
//
// A handle adds its own to the store's once a second and with Close, so that a process that is killed
// loses those of a second, and so may a store that breaks the connection. Calls that are under way at
// Close may be missing. Calls in a transaction count whether or not it commits. All counts may begin
// at 0 again after a Purge, and when there was nothing to count for an hour.
type Activity struct {
	Pushed int64 // messages that were stored, those included that replaced one
	Acked  int64 // messages that were acknowledged, those included that were replaced in flight

	// Lateness counts hand-outs by how long after the due time they were, on the store's clock: the
	// first of each message, and again one after it was given back untouched or redriven.
	Lateness LatenessHistogram
}

// UnknownActivity is that of a store that lacks [CountingActivity]: Pushed and Acked are [Unknown], and
// Lateness is 0.
var UnknownActivity = Activity{Pushed: Unknown, Acked: Unknown}

// LatenessHistogram counts hand-outs by how late they were. Each count is of those later than the
// bound before and no later than its own of [LatenessBounds]; the last is of those later than all
// bounds.
type LatenessHistogram [len(latenessBounds) + 1]int64

var latenessBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	time.Minute, 10 * time.Minute, time.Hour,
}

// LatenessBounds returns the bounds of a [LatenessHistogram]: 1, 2 and 5 ms and so on up to 10 s, a
// minute, 10 minutes, an hour.
func LatenessBounds() []time.Duration { return slices.Clone(latenessBounds[:]) }

// Add counts a message that came so late.
func (h *LatenessHistogram) Add(late time.Duration) {
	i := 0
	for i < len(latenessBounds) && late > latenessBounds[i] {
		i++
	}
	h[i]++
}

// Since returns what was counted after an earlier histogram of the same queue. It is h where the
// counts have begun at 0 again.
func (h LatenessHistogram) Since(earlier LatenessHistogram) LatenessHistogram {
	between := h
	for i, n := range earlier {
		if between[i] -= n; between[i] < 0 {
			return h
		}
	}
	return between
}

// Quantile returns the smallest bound that a share of the messages does not exceed, such as 0.99 of
// them: the largest duration where that is later than all bounds, and 0 where nothing was counted.
func (h LatenessHistogram) Quantile(share float64) time.Duration {
	var all, seen int64
	for _, n := range h {
		all += n
	}
	for i, n := range h {
		if seen += n; all > 0 && float64(seen) >= share*float64(all) {
			if i == len(latenessBounds) {
				return math.MaxInt64
			}
			return latenessBounds[i]
		}
	}
	return 0
}
