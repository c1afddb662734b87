package delayq

import (
	"context"
	"time"
)

// Stats counts the messages of a queue. Each message is in exactly one of the first four.
type Stats struct {
	Scheduled int64 // not due yet
	Ready     int64 // due, waiting for a worker
	InFlight  int64 // a worker has it
	Dead      int64 // dead letters

	// Quarantined counts what others wrote into a shared store and nobody can read. It is none
	// of the four; only backends that share queues with other programs have any.
	Quarantined int64

	// HeadDue is the earliest due time among scheduled and ready messages; the zero
	// time without any.
	HeadDue time.Time
}

func (q *queue) Stats(ctx context.Context) (Stats, error) {
	if q.inspect == nil {
		return Stats{}, q.fail("stats", "", q.unsupported("stats"))
	}
	if err := validContext(ctx); err != nil {
		return Stats{}, q.fail("stats", "", err)
	}
	s, err := q.inspect.Stats(ctx)
	return Stats(s), q.fail("stats", "", err)
}
