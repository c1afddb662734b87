package interop

import (
	"context"
	"time"
)

// Take takes a value off the destination and waits for one that long, which Redisson cuts to whole
// seconds, at least one; nil if there is none.
func (q *Queue) Take(ctx context.Context, wait time.Duration) (any, error) {
	return q.ask(ctx, "take", millis(wait))
}

// PollReady takes a value off the destination; nil if there is none.
func (q *Queue) PollReady(ctx context.Context) (any, error) { return q.ask(ctx, "readyPoll") }

// ReadySize counts the values in the destination.
func (q *Queue) ReadySize(ctx context.Context) (int, error) {
	n, err := result[int32](q.ask(ctx, "readySize"))
	return int(n), err
}
