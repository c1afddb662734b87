package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// mustHold fails unless the queue holds that many messages, all of them scheduled. Not every store
// can count.
func mustHold(b *testing.B, q delayq.Queue, n int) {
	b.Helper()
	if !q.Supports(delayq.CountingScheduled) {
		return
	}
	s, err := q.Stats(context.Background())
	load.Must(b, err)
	if s.Scheduled != int64(n) || s.Ready+s.InFlight+s.Dead != 0 {
		b.Fatalf("want %d messages scheduled and no other, got %+v", n, s)
	}
}

// mustBeWhole fails when a delivery differs from the pushed message, or was early. Its attempt must
// be the first where the store says so: RabbitMQ without counts also counts messages that cross the
// end of a subscription.
func mustBeWhole(b *testing.B, q delayq.Queue, d *delayq.Delivery, now time.Time) {
	again := d.Attempt != 1 && q.Supports(delayq.CountingScheduled)
	if len(d.Body) != load.BodySize || again || now.UnixNano() < d.Due.UnixNano() {
		b.Helper()
		b.Fatalf("%v: %d bytes at %v", d, len(d.Body), now)
	}
}

// A consumer has the messages of a tally handled. Its result waits for the last one, and fails
// unless each has come once and in time and the queue then holds no more than before.
type consumer func(b *testing.B, q delayq.Queue, t *load.Tally) (wait func())

// consume is a consumer of 32 workers.
func consume(b *testing.B, q delayq.Queue, t *load.Tally) (wait func()) {
	return awaiting(b, t, load.Consume(b, t.Handle, q), q, 0)
}

// consumeBatches is a consumer by ReceiveBatch and AckBatch.
func consumeBatches(b *testing.B, q delayq.Queue, t *load.Tally) (wait func()) {
	return awaiting(b, t, load.Until(b, 4, func(ctx context.Context, _ int) error {
		for {
			ds, err := q.ReceiveBatch(ctx, 100)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, d := range ds {
				t.Handle(d)
			}
			if err := q.AckBatch(context.WithoutCancel(ctx), ds); err != nil {
				return err
			}
		}
	}), q, 0)
}

func awaiting(b *testing.B, t *load.Tally, stop func(), q delayq.Queue, left int) (wait func()) {
	return func() {
		b.Helper()
		t.Wait()
		stop()
		t.Outcome().MustHold(b, b.Name())
		mustHold(b, q, left)
	}
}
