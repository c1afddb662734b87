package rabbitmq

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// TestNothingIsSentTooLate has a message wait for its turn on the channel until its call has ended,
// or its time to be sent. It is not sent then, and takes no slot.
func TestNothingIsSentTooLate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	q := openNew(ctx, t, testenv.SharedRabbitMQ(t).URL())
	if err := errors.Join(q.Schedule(ctx, []backend.Message{{ID: "first"}})...); err != nil {
		t.Fatal(err)
	}
	c := q.b.pub.channels[ordinary]
	taken := func(n int) {
		for len(c.slots) != n {
			if sleep(ctx, time.Millisecond); ctx.Err() != nil {
				t.Fatalf("%d slots are taken; want %d", len(c.slots), n)
			}
		}
	}
	taken(0)
	calling, end := context.WithCancel(ctx)
	defer end()
	out := q.scheduled(&record{id: "late", due: time.Now()}, time.Now())
	c.mu.Lock()
	done := make(chan error, 1)
	go func() { done <- c.send(calling, &publication{outgoing: &out}) }()
	taken(1)
	end()
	c.mu.Unlock()
	if err := <-done; !errors.Is(err, context.Canceled) || c.next != 1 {
		t.Errorf("after the end of its call: %v, and %d messages were sent", err, c.next)
	}
	if len(c.slots) != 0 {
		t.Errorf("%d slots are taken", len(c.slots))
	}
}
