package interop

import (
	"context"
	"fmt"
	"time"
)

// Queue is an RDelayedQueue and its destination, an RBlockingQueue, as one Java process sees them.
// Its methods wait for Java; an exception there is a [*JavaError]. Any goroutine may call them.
//
// The first call of a method of the delayed queue makes the process a transferrer of the queue, as
// getDelayedQueue does: until [Queue.Destroy], it moves due values. Methods of the destination,
// which have Ready, Take or Consume in their names, do not.
type Queue struct {
	jvm          *JVM
	name, prefix string
	codec        Codec
}

// QueueOption says how to see a [Queue].
type QueueOption func(*Queue)

// WithCodec names the codec; without, it is [Default].
func WithCodec(c Codec) QueueOption { return func(q *Queue) { q.codec = c } }

// WithNamePrefix gives the client a NameMapper that puts a prefix before every name. Each prefix is
// another client of the same process.
func WithNamePrefix(prefix string) QueueOption { return func(q *Queue) { q.prefix = prefix } }

// Queue returns a queue by its name. It does not ask Java for anything yet.
func (j *JVM) Queue(name string, opts ...QueueOption) *Queue {
	q := &Queue{jvm: j, name: name, codec: Default}
	for _, opt := range opts {
		opt(q)
	}
	return q
}

// Name is the queue's name, without a prefix.
func (q *Queue) Name() string { return q.name }

func (q *Queue) ask(ctx context.Context, operation string, args ...any) (any, error) {
	return q.jvm.process.ask(ctx, operation, q.arguments(args)...)
}

func (q *Queue) arguments(args []any) []any {
	return append([]any{q.name, string(q.codec), q.prefix}, args...)
}

func result[T any](value any, err error) (T, error) {
	got, ok := value.(T)
	if err == nil && !ok {
		err = fmt.Errorf("java returned %v, which is %T and not %T", value, value, got)
	}
	return got, err
}

// millis rounds up, so that nothing is asked for too early.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
