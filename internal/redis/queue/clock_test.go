package queue_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/setup"
	"github.com/delayq/delayq/internal/testenv"
)

// On a fake clock no key expires. A sleeper wakes at the due time, and not a microsecond later,
// though Redis is told whole ones.
func TestFakeClockAtTheDueTime(t *testing.T) {
	t.Parallel()
	for _, triggered := range []bool{false, true} {
		t.Run(fmt.Sprint("triggered=", triggered), func(t *testing.T) {
			t.Parallel()
			client, seen := testenv.SharedRedis(t).Client(t), new(scripts)
			client.AddHook(seen.hook())
			c := config(client)
			c.Triggered, c.Poll = triggered, time.Hour
			b := setup.Backend(c)
			t.Cleanup(func() {
				_ = b.Close()
				redistest.Wipe(t, client, "delayq:{"+t.Name()+"}:*")
			})
			due := time.UnixMilli(1_700_000_000_000)
			clock := clockwork.NewFakeClockAt(due.Add(-time.Second + time.Nanosecond))
			q, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: slog.New(slog.DiscardHandler), Clock: clock})
			must(t, err)
			must(t, q.Schedule(t.Context(), []backend.Message{{ID: "a", Due: due}})...)
			got := make(chan error, 1)
			go func() {
				_, err := q.Receive(t.Context(), 1, time.Minute)
				got <- err
			}()
			channel := "delayq:{" + t.Name() + "}:wake"
			await(t, "the subscription, and a sleeper after it", func() bool {
				before := seen.n.Load()
				time.Sleep(50 * time.Millisecond) // between two counts; the condition ends the wait
				return client.PubSubNumSub(t.Context(), channel).Val()[channel] == 1 && seen.n.Load() == before
			})
			must(t, clock.BlockUntilContext(t.Context(), 1))
			clock.Advance(due.Sub(clock.Now()))
			select {
			case err := <-got:
				must(t, err)
			case <-time.After(patience):
				t.Error("the sleeper did not wake")
			}
		})
	}
}
