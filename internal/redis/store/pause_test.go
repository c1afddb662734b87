package store_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
)

// A pause that begins while a worker claims holds its messages back, untouched. The mover has moved
// them by then, and arbitrate has chosen them.
func TestPausedWhileClaiming(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, how string, way claimer) {
		b.push("a", "b")
		b.claim(way, time.Minute) // loads the scripts
		_, err := b.Purge(b.ctx)
		must(t, err)
		b.push("a", "b")
		last := map[string]int{"script": 1, "mover": 2, "arbitrate": 2}[how] // the command that leases
		client := redistest.Another(t, b.raw)
		client.AddHook(redistest.OnCommand(func(_ redis.Cmder, send func() error) error {
			if last--; last == 0 {
				must(t, b.PauseAll(b.ctx, backend.Pause{}))
			}
			return send()
		}))
		c, err := ways(b.with(client))[how](b.ctx, 10, time.Minute, "late")
		if err != nil || len(c.Deliveries) != 0 || last > 0 {
			t.Errorf("got %+v, %v", c, err)
		}
		b.nothing(way)
		must(t, b.ResumeAll(b.ctx))
		for _, id := range []string{"a", "b"} {
			ds := b.claimOf(way, 1)
			if len(ds) != 1 || ds[0].ID != id || ds[0].Attempt != 1 {
				t.Fatalf("after the pause %+v was handed out, want %s", ds, id)
			}
			b.ack(ds[0])
		}
		b.empty()
	})
}

// A claim from a paused queue tells when the pause ends, or before that the first lease.
func TestNextEventOfAPausedQueue(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		next := func(p backend.Pause, want time.Duration) {
			t.Helper()
			must(t, b.PauseAll(b.ctx, p))
			c := b.claim(way, time.Minute)
			left := c.Next.Sub(c.Now)
			if len(c.Deliveries) > 0 || c.Next.IsZero() != (want == 0) || want > 0 && (left > want+time.Millisecond || left < want-10*time.Second) {
				t.Errorf("got %d messages, and the next event in %v; want none, %v", len(c.Deliveries), left, want)
			}
		}
		b.push("held")
		held := b.next(way, 30*time.Minute, "held")
		b.push("due")
		b.pushAfter(time.Minute, "later")
		next(backend.Pause{For: time.Hour}, 30*time.Minute)
		next(backend.Pause{For: 20 * time.Minute}, 20*time.Minute)
		next(backend.Pause{}, 30*time.Minute)
		b.ack(held)
		next(backend.Pause{}, 0)
		next(backend.Pause{Until: time.Now().Add(time.Hour)}, time.Hour)
		must(t, b.PauseAll(b.ctx, backend.Pause{Until: time.Now().Add(-time.Hour)}))
		b.ack(b.next(way, time.Minute, "due"))
		b.all(b.Cancel(b.ctx, []string{"later"}))
		b.empty()
	})
}

// A pause that an operator has written by hand, and no script can read, has no end.
func TestUnreadablePause(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		b.push("a")
		for _, end := range []string{"until Monday", "", "-5", "nan", "-inf"} {
			must(t, b.raw.Set(b.ctx, b.key("paused"), end, 0).Err())
			b.nothing(way)
			if s, err := b.Stats(b.ctx); err != nil || !s.Paused || !s.PausedUntil.IsZero() {
				t.Errorf("with %q, got %+v, %v", end, s, err)
			}
		}
		must(t, b.ResumeAll(b.ctx))
		b.ack(b.next(way, time.Minute, "a"))
		b.empty()
	})
}

// The key of a pause does not expire by the server's clock where another clock is given: the pause
// would end too early, or never.
func TestPauseByAGivenClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	s := store.New(store.Config{Client: b.raw, Prefix: "test"}, t.Name(), clock)
	must(t, s.PauseAll(b.ctx, backend.Pause{For: time.Hour}))
	ttl, err := b.raw.PTTL(b.ctx, b.key("paused")).Result()
	must(t, err)
	if ttl != -1 {
		t.Errorf("the server ends the pause in %v, or has none", ttl)
	}
}
