package delayq

import (
	"context"
	"time"
)

// Pending is a message that waits: scheduled, or due and not handed out.
type Pending struct {
	ID       string // empty for one that gets its id with the first hand-out, as some of Java's do
	Body     []byte
	Headers  map[string]string // nil when there are none
	Due      time.Time         // zero where nobody knows it any more
	Attempts int               // hand-outs counted so far

	// Err says why nobody can read the body, on a queue that other programs write to; Body then has the
	// bytes that are there.
	Err error
}

func (q *queue) Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error) {
	if q.peek == nil {
		return nil, "", q.fail("peek", "", q.unsupported("peek"))
	}
	if err := firstError(validContext(ctx), validLimit(limit)); err != nil {
		return nil, "", q.fail("peek", "", err)
	}
	seen, next, err := q.peek.Peek(ctx, cursor, limit)
	for _, p := range seen {
		page = append(page, Pending(p))
	}
	return page, next, q.fail("peek", "", err)
}

func (q *queue) Purge(ctx context.Context) (removed int64, err error) {
	if q.purge == nil {
		return 0, q.fail("purge", "", q.unsupported("purge"))
	}
	if err := validContext(ctx); err != nil {
		return 0, q.fail("purge", "", err)
	}
	removed, err = q.purge.Purge(ctx)
	return removed, q.fail("purge", "", err)
}
