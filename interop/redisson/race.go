package interop

import (
	"context"
	"time"
)

// Race provokes the wake-ups that Redisson loses (its issue 5172). One far item is pending, and
// near ones are offered one after another, each at the moment at which the previous one arrives.
// Redisson then sometimes arms its timer for the far item only.
type Race struct {
	Lanes  int           // queues on which this happens at the same time: the name of the queue, - and a number from 0
	Rounds int           // near items in each lane
	Near   time.Duration // their delay
	Far    time.Duration // the far item's delay; it must outlast the race
	Wait   time.Duration // until a near item counts as lost, in whole seconds from its offer; it is removed then
}

// RaceResult counts the near items by outcome.
type RaceResult struct {
	Late []time.Duration // of those that arrived, by the clock of Java
	Lost int
}

// Race runs the race in Java.
func (q *Queue) Race(ctx context.Context, r Race) (RaceResult, error) {
	all, err := result[[]any](q.ask(ctx, "race", int64(r.Lanes), int64(r.Rounds), millis(r.Near), millis(r.Far), millis(r.Wait)))
	var found RaceResult
	for _, late := range all {
		if nanos, ok := late.(int64); ok {
			found.Late = append(found.Late, time.Duration(nanos))
		} else {
			found.Lost++
		}
	}
	return found, err
}
