package verdict

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	interop "github.com/delayq/delayq/interop/redisson"
)

// redissonBackend is an RDelayedQueue and its RBlockingQueue in a Java process. What is polled is out of Redis: there is nothing to
// settle, and an acknowledgement does nothing.
type redissonBackend struct {
	handles
	jvm *interop.JVM
}

// Traits declare milliseconds, values of any bytes, which carry our ids, and neither headers nor deduplication.
func (b *redissonBackend) Traits() backend.Traits {
	return backend.Traits{
		Name: "Redisson", Resolution: time.Millisecond, Leases: backend.InConnection,
		Lacks: backend.Lacking(
			backend.Cancelling, backend.Rescheduling, backend.Counting, backend.Redriving, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing,
			backend.Ordering, backend.KeepingHeaders, backend.Deduplicating, backend.UniqueWindows, backend.CountingAttempts, backend.Transactions,
		),
	}
}

func (b *redissonBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) {
		return &redissonQueue{closer: newCloser(), queue: b.jvm.Queue(name, interop.WithCodec(interop.Bytes))}, nil
	})
}

type redissonQueue struct {
	backend.Unsupported
	closer
	queue *interop.Queue
	last  atomic.Uint64
}

var _ backend.Queue = (*redissonQueue)(nil)

func (q *redissonQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		if len(m.Headers) > 0 {
			return lacks("Redisson", "headers")
		}
		delay := m.Delay
		if !m.Due.IsZero() {
			delay = max(0, time.Until(m.Due))
		}
		value := append([]byte(m.ID), 0) // no id has a NUL
		return q.queue.Offer(ctx, append(value, m.Body...), delay)
	})
}

// pollInterval is between looks at the destination. A take that waits would go on in Java when the context has ended, and what it
// took then would be lost by the adapter.
const pollInterval = 5 * time.Millisecond

func (q *redissonQueue) Receive(ctx context.Context, _ int, lease time.Duration) ([]backend.Delivery, error) {
	for {
		if err := q.ready(ctx); err != nil {
			return nil, err
		}
		value, err := q.queue.PollReady(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		if value != nil {
			d, err := q.delivery(value, lease)
			return []backend.Delivery{d}, err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		case <-q.shut:
		}
	}
}

func (q *redissonQueue) delivery(value any, lease time.Duration) (d backend.Delivery, err error) {
	content, ok := value.([]byte)
	id, body, found := bytes.Cut(content, []byte{0})
	if !ok || !found {
		return d, fmt.Errorf("the value %v is not one of the adapter's", value)
	}
	return backend.Delivery{
		ID: string(id), Body: body, Attempt: 1, Token: backend.Token{Lo: q.last.Add(1)}, Until: time.Now().Add(lease),
	}, nil
}

func (q *redissonQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return each(ctx, &q.closer, ls, func(backend.Lease) error { return nil })
}

func (q *redissonQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return each(ctx, &q.closer, rs, func(backend.Return) error { return lacks("Redisson", "giving back") })
}

func (q *redissonQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return each(ctx, &q.closer, bs, func(backend.DeadLetterRequest) error { return lacks("Redisson", "dead letters") })
}

func (q *redissonQueue) Extend(ctx context.Context, ls []backend.Lease, _ time.Duration) ([]time.Time, []error) {
	return make([]time.Time, len(ls)), each(ctx, &q.closer, ls, func(backend.Lease) error { return lacks("Redisson", "leases") })
}

// Close leaves the transfers to Java.
func (q *redissonQueue) Close() error {
	return q.closeOnce(func() error { return nil })
}
