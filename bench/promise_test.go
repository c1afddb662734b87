package bench

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

const bodySize = 100 // bytes, as the figures of other queues are given

var body = make([]byte, bodySize)

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

// mustHold fails unless the queue holds that many messages, all of them scheduled. Not every store
// can count.
func mustHold(b *testing.B, q delayq.Queue, n int) {
	b.Helper()
	if !q.Supports(delayq.Counting) {
		return
	}
	s, err := q.Stats(context.Background())
	must(b, err)
	if s.Scheduled != int64(n) || s.Ready+s.InFlight+s.Dead != 0 {
		b.Fatalf("want %d messages scheduled and no other, got %+v", n, s)
	}
}

// mustBeWhole fails when a delivery differs from the pushed message, or was early. Its attempt must
// be the first where the store says so: RabbitMQ without counts also counts messages that cross the
// end of a subscription.
func mustBeWhole(b *testing.B, q delayq.Queue, d *delayq.Delivery, now time.Time) {
	again := d.Attempt != 1 && q.Supports(delayq.Counting)
	if len(d.Body) != bodySize || again || now.UnixNano() < d.Due.UnixNano() {
		b.Helper()
		b.Fatalf("%v: %d bytes at %v", d, len(d.Body), now)
	}
}
