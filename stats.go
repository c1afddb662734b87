package delayq

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Stats counts the messages of a queue. Each message is in exactly one of Scheduled, Ready,
// InFlight and Dead.
type Stats = backend.Stats

func (q *queue) Stats(ctx context.Context) (Stats, error) {
	if err := firstError(q.lacks(Counting, "stats"), validContext(ctx)); err != nil {
		return Stats{}, q.fail("stats", "", err)
	}
	s, err := q.store.Stats(ctx)
	return s, q.fail("stats", "", err)
}
