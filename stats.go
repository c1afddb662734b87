package delayq

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Stats counts the messages of a queue. Each message is in exactly one of Scheduled, Ready,
// InFlight and Dead.
type Stats = backend.Stats

// Pending is a message that waits: scheduled, or due and not handed out. [Inspector.Peek] returns
// it.
type Pending = backend.Pending

func (q *queue) Stats(ctx context.Context) (Stats, error) {
	if err := firstError(q.lacks(Counting, "stats"), validContext(ctx)); err != nil {
		return Stats{}, q.fail("stats", "", err)
	}
	s, err := q.store.Stats(ctx)
	return s, q.fail("stats", "", err)
}

func (q *queue) Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error) {
	if err := firstError(q.lacks(Peeking, "peek"), validContext(ctx), validLimit(limit)); err != nil {
		return nil, "", q.fail("peek", "", err)
	}
	page, next, err = q.store.Peek(ctx, cursor, limit)
	return page, next, q.fail("peek", "", err)
}

func (q *queue) Purge(ctx context.Context) (removed int64, err error) {
	if err := firstError(q.lacks(Purging, "purge"), validContext(ctx)); err != nil {
		return 0, q.fail("purge", "", err)
	}
	removed, err = q.store.Purge(ctx)
	return removed, q.fail("purge", "", err)
}
