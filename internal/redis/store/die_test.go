package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// pushedAndMoved has a message that a worker has moved to the list and not taken.
func pushedAndMoved(t *testing.T) *bench {
	t.Helper()
	b := setup(t)
	b.push("a")
	f := &redistest.Fault{At: "evalsha", Dies: true}
	if _, err := b.faulty(f).MoveAndTake(b.ctx, 10, time.Minute, "dead"); !errors.Is(err, redistest.ErrDied) {
		t.Fatalf("the worker that dies got %v", err)
	}
	if n := b.raw.LLen(b.ctx, b.key("ready")).Val(); n != 1 {
		t.Fatalf("%d messages are ready, want 1", n)
	}
	return b
}

func TestMovedAndNotTaken(t *testing.T) {
	t.Parallel()
	b := pushedAndMoved(t)
	stats, err := b.Stats(b.ctx)
	if err != nil || stats.Ready != 1 || stats.Scheduled+stats.InFlight+stats.Dead != 0 || stats.HeadDue.IsZero() {
		t.Errorf("stats %+v, %v", stats, err)
	}
	b.want(b.Schedule(b.ctx, []backend.Message{{ID: "a"}}), backend.ErrDuplicate)
	d := b.next(b.MoveAndTake, time.Minute, "a")
	if d.Attempt != 1 {
		t.Errorf("attempt %d", d.Attempt)
	}
	b.ack(d)
	b.empty()
}

func TestMovedAndCancelled(t *testing.T) {
	t.Parallel()
	b := pushedAndMoved(t)
	b.cancel("a")
	b.nothing(b.MoveAndTake)
	b.empty()
}

// Workers of all modes may meet on one queue, for example while one mode takes over from another.
func TestMovedAndClaimedAnotherWay(t *testing.T) {
	t.Parallel()
	for name := range ways(nil) {
		for _, rescheduled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", rescheduled: ", rescheduled), func(t *testing.T) {
				t.Parallel()
				b := pushedAndMoved(t)
				way := ways(b.Store)[name]
				if rescheduled {
					b.move("a", time.Hour)
					b.nothing(way)
					b.move("a", 0)
				}
				d := b.next(way, time.Minute, "a")
				if d.Attempt != 1 {
					t.Errorf("attempt %d", d.Attempt)
				}
				b.ack(d)
				b.empty()
			})
		}
	}
}
