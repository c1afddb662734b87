package store_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
)

// A message of an ended lease that no worker has claimed since is scheduled: it can be moved. The
// attempt of the worker that died counts.
func TestRescheduledAfterItsLeaseEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s := store.New(store.Config{Client: b.raw, Prefix: "test"}, t.Name(), clock)
	b.all(s.Schedule(b.ctx, []backend.Message{{ID: "m"}}))
	claim := func(attempt int) {
		t.Helper()
		c, err := s.Claim(b.ctx, 1, time.Second, "claim")
		if err != nil || len(c.Deliveries) != 1 || c.Deliveries[0].Attempt != attempt {
			t.Fatalf("claimed %+v, %v; want attempt %d", c.Deliveries, err, attempt)
		}
	}
	claim(1)
	clock.Advance(time.Second)
	b.all(s.Reschedule(b.ctx, []backend.Move{{ID: "m", Delay: time.Second}}))
	clock.Advance(time.Second)
	claim(2)
}
