package interop

import (
	"context"
	"time"
)

// Hold makes the process a transferrer of the queue and does nothing else.
func (q *Queue) Hold(ctx context.Context) error {
	_, err := q.ask(ctx, "hold")
	return err
}

// Destroy ends the transfers of this process. It deletes nothing.
func (q *Queue) Destroy(ctx context.Context) error {
	_, err := q.ask(ctx, "destroy")
	return err
}

// Offer makes a value due that long from now by the clock of Java, in milliseconds, rounded up.
func (q *Queue) Offer(ctx context.Context, value any, delay time.Duration) error {
	_, err := q.ask(ctx, "offer", value, millis(delay))
	return err
}

// Remove takes the first value that is not due yet and encodes to the same bytes out of the queue,
// and reports whether there was one.
func (q *Queue) Remove(ctx context.Context, value any) (bool, error) {
	return result[bool](q.ask(ctx, "remove", value))
}

// Contains reports whether a value that is not due yet encodes to the same bytes.
func (q *Queue) Contains(ctx context.Context, value any) (bool, error) {
	return result[bool](q.ask(ctx, "contains", value))
}

// Size counts the values that have not been transferred.
func (q *Queue) Size(ctx context.Context) (int, error) {
	n, err := result[int32](q.ask(ctx, "size"))
	return int(n), err
}

// ReadAll returns the values that have not been transferred, in the order in which they were
// offered.
func (q *Queue) ReadAll(ctx context.Context) ([]any, error) {
	return result[[]any](q.ask(ctx, "readAll"))
}

// Peek returns the value that Poll would return, and leaves it there.
func (q *Queue) Peek(ctx context.Context) (any, error) { return q.ask(ctx, "peek") }

// Poll takes the value that was offered first, due or not; nil if there is none.
func (q *Queue) Poll(ctx context.Context) (any, error) { return q.ask(ctx, "poll") }

// PollMany takes up to n values as Poll does.
func (q *Queue) PollMany(ctx context.Context, n int) ([]any, error) {
	return result[[]any](q.ask(ctx, "pollMany", int64(n)))
}
