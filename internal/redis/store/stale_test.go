package store_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// stale are the events between a worker's look and its bid that make the bid's entry stale.
var stale = map[string]struct {
	meanwhile func(*bench)
	attempt   int // of the delivery that must still come, 0 for none
}{
	"taken and acked": {meanwhile: func(b *bench) { b.ack(b.next(b.Claim, time.Minute, "a")) }},
	"taken and nacked": {func(b *bench) {
		d := b.next(b.Claim, time.Minute, "a")
		b.nack(d, 150*time.Millisecond)
	}, 2},
	"taken and given back": {func(b *bench) {
		d := b.next(b.Claim, time.Minute, "a")
		b.all(b.Nack(b.ctx, []backend.Return{{Lease: d.Lease(), Untouched: true}}))
	}, 1},
	"cancelled":   {meanwhile: func(b *bench) { b.cancel("a") }},
	"rescheduled": {func(b *bench) { b.later() }, 1},
	"pushed anew": {func(b *bench) {
		b.cancel("a")
		b.pushAfter(150*time.Millisecond, "a")
	}, 1},
	"dead and redriven": {func(b *bench) {
		d := b.next(b.Claim, time.Minute, "a")
		b.deadLetter(d)
		b.all(b.Redrive(b.ctx, []string{"a"}))
		b.later()
	}, 1},
	"moved": {func(b *bench) {
		f := &redistest.Fault{At: "evalsha", Dies: true}
		_, _ = b.faulty(f).MoveAndTake(b.ctx, 10, time.Minute, "dead")
	}, 1},
}

func (b *bench) ack(d backend.Delivery) {
	b.t.Helper()
	b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
}

func (b *bench) later() {
	b.t.Helper()
	b.all(b.Reschedule(b.ctx, []backend.Move{{ID: "a", Delay: 150 * time.Millisecond}}))
}

// TestWorkerLosesTheRace lets a worker lose the race for a message. It gets nothing and leaves
// nothing.
func TestWorkerLosesTheRace(t *testing.T) {
	for name, g := range stale {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.push("a")
			loser := b.faulty(&redistest.Fault{At: "multi", Before: func() { g.meanwhile(b) }})
			c, err := loser.Arbitrate(b.ctx, 10, 50*time.Millisecond, "loser")
			if err != nil || len(c.Deliveries) != 0 {
				t.Fatalf("the loser got %+v, %v", c, err)
			}
			b.afterLosing(g.attempt, name == "moved")
		})
	}
}

// TestLoserDiesBeforeCleaningUp lets the worker die between its bid and the clean-up, so that the
// entry it made among the leases stays until its end.
func TestLoserDiesBeforeCleaningUp(t *testing.T) {
	for name, g := range stale {
		for next := range ways(nil) {
			t.Run(name+", then "+next, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.push("a")
				f := &redistest.Fault{At: "multi", Before: func() { g.meanwhile(b) }, Dies: true}
				if c, err := b.faulty(f).Arbitrate(b.ctx, 10, 50*time.Millisecond, "loser"); len(c.Deliveries) != 0 {
					t.Fatalf("the loser got %+v, %v", c, err)
				}
				if !f.Met() {
					t.Fatal("the loser made no bid")
				}
				b.withStale(ways(b.Store)[next], g.attempt, name == "moved")
			})
		}
	}
}

// TestStaleEntryEndsNoLaterLease puts a message back that a mover had when a bid for it lost. The
// entry that the bid left does not end the lease of the next worker that wins without a script.
func TestStaleEntryEndsNoLaterLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	f := &redistest.Fault{At: "multi", Before: func() { stale["moved"].meanwhile(b) }}
	if c, err := b.faulty(f).Arbitrate(b.ctx, 10, time.Minute, "loser"); err != nil || len(c.Deliveries) != 0 {
		t.Fatalf("the loser got %+v, %v", c, err)
	}
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "earlier", Due: time.Unix(0, 0)}}))
	if ds := b.claimOf(b.Claim, 1); len(ds) != 1 || ds[0].ID != "earlier" { // after a look that puts the other one back
		t.Fatalf("got %+v", ds)
	}
	d := b.next(b.Arbitrate, time.Hour, "a")
	ends, err := b.raw.ZRangeWithScores(b.ctx, b.key("leases"), -1, -1).Result()
	if err != nil || len(ends) != 1 || int64(ends[0].Score) != d.Until.UnixMilli() {
		t.Errorf("the lease is to end at %d, and the last end is %v, %v", d.Until.UnixMilli(), ends, err)
	}
}

// comes checks that the message comes with its attempt, and acks it. Where a mover had it, the end
// of the stale entry may count as one more.
func (b *bench) comes(way claimer, attempt int, moved bool) {
	b.t.Helper()
	d := b.next(way, time.Minute, "a")
	if d.Attempt != attempt && (!moved || d.Attempt != attempt+1) {
		b.t.Errorf("attempt %d, want %d", d.Attempt, attempt)
	}
	b.ack(d)
}

// withStale checks that the message comes as if there were no stale entry, and that the entry goes.
func (b *bench) withStale(way claimer, attempt int, moved bool) {
	b.t.Helper()
	if attempt > 0 {
		b.comes(way, attempt, moved)
	}
	for deadline := time.Now().Add(patience); len(b.left()) > 0 && time.Now().Before(deadline); {
		c := b.claim(way, time.Minute)
		if len(c.Deliveries) > 0 {
			b.t.Fatalf("the stale entry brought %+v", c.Deliveries)
		}
		b.napUntil(c)
	}
	b.empty()
}

// afterLosing checks the keys after the loser has cleaned up.
func (b *bench) afterLosing(attempt int, moved bool) {
	b.t.Helper()
	if attempt > 0 {
		b.comes(b.MoveAndTake, attempt, moved)
	}
	if !moved { // the entry of a message in a mover's list stays
		b.empty()
	}
}

// A loser's bid for a message that another worker holds changes nothing.
func TestBidForALeasedMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	var winner backend.Delivery
	f := &redistest.Fault{At: "multi", Before: func() { winner = b.next(b.Claim, time.Minute, "a") }}
	if c, err := b.faulty(f).Arbitrate(b.ctx, 10, time.Millisecond, "loser"); err != nil || len(c.Deliveries) != 0 {
		t.Fatalf("the loser got %+v, %v", c, err)
	}
	b.nothing(b.Arbitrate)
	b.want(b.Cancel(b.ctx, []string{"a"}), backend.ErrInFlight)
	b.ack(winner)
	b.empty()
}
