package store_test

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// losing is a store that loses the reply to its first script, and has something happen before it
// tries again.
func (b *bench) losing(meanwhile func()) *store.Store {
	b.t.Helper()
	return b.faulty(redistest.LostReply(meanwhile))
}

func (b *bench) nothingMeanwhile() {}

// unknown checks that an outcome is neither success nor one of the errors that a caller would
// believe.
func (b *bench) unknown(errs []error) {
	b.t.Helper()
	if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), "unknown") {
		b.t.Errorf("got %v, want that the outcome is unknown", errs)
	}
}

// take claims the due messages, whatever their bodies.
func (b *bench) take() backend.Delivery {
	b.t.Helper()
	c := b.claim(b.Claim, time.Minute)
	if len(c.Deliveries) != 1 {
		b.t.Fatalf("got %d messages, want 1", len(c.Deliveries))
	}
	return c.Deliveries[0]
}

// A push that did not arrive is made again, unless it could have come and gone.
func TestLostScheduleIsRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost := func() *store.Store { return b.faulty(&redistest.Fault{At: "evalsha", Unsent: true}) }
	b.all(lost().Schedule(b.ctx, []backend.Message{{ID: "later", Delay: time.Hour}}))
	b.unknown(lost().Schedule(b.ctx, []backend.Message{{ID: "now"}}))
	if n := b.raw.HLen(b.ctx, b.key("messages")).Val(); n != 1 {
		t.Errorf("%d messages are stored, want 1", n)
	}
}

func TestScheduleMeetsAnotherAfterItsReplyIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	b.want(b.losing(b.nothingMeanwhile).Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("other")}}), backend.ErrDuplicate)
}

// The first message of an id is not taken for one that was to be due later.
func TestScheduleMeetsAnotherTimeAfterItsReplyIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	due := time.Now().Add(time.Hour)
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour}}))
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "b", Due: due}}))
	b.want(b.losing(b.nothingMeanwhile).Schedule(b.ctx, []backend.Message{{ID: "a", Delay: 2 * time.Hour}}), backend.ErrDuplicate)
	b.want(b.losing(b.nothingMeanwhile).Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Minute}}), backend.ErrDuplicate)
	b.want(b.losing(b.nothingMeanwhile).Schedule(b.ctx, []backend.Message{{ID: "b", Due: due.Add(time.Minute)}}), backend.ErrDuplicate)
}

// A repeated push recognizes its own message, however long it has waited for a connection.
func TestScheduleLosesItsReplyAndItsConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// the script is there now
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "first", Delay: time.Hour}}))
	var first atomic.Bool
	client := redistest.LostReply(func() {}).Client(t, b.raw)
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() == "evalsha" && !first.CompareAndSwap(false, true) {
			time.Sleep(1500 * time.Millisecond) // that is how long there is no connection
		}
		return send()
	}))
	b.all(b.with(client).Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour}}))
}

// A late ack whose reply is lost is no success for a worker that lost the lease: another worker has
// acked the message.
func TestAckLosesItsReplyAfterItsLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	first := b.next(b.Claim, 20*time.Millisecond, "a")
	second := b.next(b.Claim, time.Minute, "a")
	b.ack(second)
	b.unknown(b.losing(b.nothingMeanwhile).Ack(b.ctx, []backend.Lease{first.Lease()}))
	b.empty()
}

// An id that is pushed again while an ack's reply is lost is no reason to call the lease lost.
func TestAckLosesItsReplyAndTheIDIsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	l := b.next(b.Claim, time.Minute, "a")
	b.all(b.losing(func() { b.push("a") }).Ack(b.ctx, []backend.Lease{l.Lease()}))
}

func TestDeadLosesItsReplyAndTheDeadLetter(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*bench) []error{
		"redriven": func(b *bench) []error { return b.Redrive(b.ctx, []string{"a"}) },
		"deleted":  func(b *bench) []error { return b.DeleteDead(b.ctx, []string{"a"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.push("a")
			l := b.next(b.Claim, time.Minute, "a")
			b.unknown(b.losing(func() { b.all(meanwhile(b)) }).Dead(b.ctx, []backend.DeadLetterRequest{{Lease: l.Lease()}}))
		})
	}
}

// Where another worker has the message by the time of the second try, the first may have given it
// back or the lease may have ended.
func TestNackLosesItsReplyAndTheMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	l := b.next(b.Claim, time.Minute, "a")
	var second backend.Delivery
	lossy := b.losing(func() { second = b.next(b.Claim, time.Minute, "a") })
	b.unknown(lossy.Nack(b.ctx, []backend.Return{{Lease: l.Lease()}}))
	b.ack(second)
	b.empty()
}

// A message that comes back because its lease has ended has spent an attempt. A worker that wanted to
// give it back untouched, and whose call did not arrive in time, is not told that it did.
func TestUntouchedNackIsLostAndTheLease(t *testing.T) {
	t.Parallel()
	for name, leased := range map[string]func(*bench) backend.Delivery{
		"first lease": func(b *bench) backend.Delivery { return b.next(b.Claim, time.Millisecond, "a") },
		"given back before": func(b *bench) backend.Delivery {
			d := b.next(b.Claim, time.Minute, "a")
			b.all(b.Nack(b.ctx, []backend.Return{{Lease: d.Lease(), Untouched: true}}))
			return b.next(b.Claim, time.Millisecond, "a")
		},
		"shortened": func(b *bench) backend.Delivery {
			d := b.next(b.Claim, time.Minute, "a")
			_, errs := b.Extend(b.ctx, []backend.Lease{d.Lease()}, time.Millisecond)
			b.all(errs)
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.push("a")
			l := leased(b)
			lost := b.faulty(&redistest.Fault{At: "evalsha", Unsent: true, Before: func() {
				await(t, "the end of the lease", func() bool {
					_, _, err := b.Peek(b.ctx, "", 1)
					must(t, err)
					return b.raw.ZCard(b.ctx, b.key("leases")).Val() == 0
				})
			}})
			b.unknown(lost.Nack(b.ctx, []backend.Return{{Lease: l.Lease(), Untouched: true}}))
		})
	}
}

// One whose lease could not have ended by itself was given back by the first try.
func TestUntouchedNackLosesItsReply(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	for range 2 {
		l := b.next(b.Claim, time.Minute, "a")
		if l.Attempt != 1 {
			t.Errorf("attempt %d", l.Attempt)
		}
		b.all(b.losing(b.nothingMeanwhile).Nack(b.ctx, []backend.Return{{Lease: l.Lease(), Untouched: true}}))
	}
}

// A message that a first try moved, and a worker took since, is neither in flight nor gone for a
// caller who would believe that nothing was moved.
func TestRescheduleLosesItsReplyAndTheMessage(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(*bench, backend.Delivery){
		"taken": func(*bench, backend.Delivery) {},
		"done":  (*bench).ack,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour}}))
			lossy := b.losing(func() { after(b, b.take()) })
			b.unknown(lossy.Reschedule(b.ctx, []backend.Move{{ID: "a"}}))
		})
	}
}

// A move whose reply is lost is made again.
func TestRescheduleLosesItsReply(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour}}))
	b.all(b.losing(b.nothingMeanwhile).Reschedule(b.ctx, []backend.Move{{ID: "a", Delay: time.Minute}}))
}

// TestClaimLosesItsReply repeats a claim, which finds the messages that its first try leased, at
// each of its steps.
func TestClaimLosesItsReply(t *testing.T) {
	// Longer than the clocks of two servers may differ: the repetition must know when the first try began.
	slowly := func() { time.Sleep(1200 * time.Millisecond) }
	for name, f := range map[string]*redistest.Fault{
		"script":            {At: "evalsha", After: func() {}},
		"arbitrate, bid":    {At: "multi", After: func() {}},
		"script, slowly":    {At: "evalsha", After: slowly},
		"arbitrate, slowly": {At: "multi", After: slowly},
		"arbitrate, read":   {At: "hmget", After: func() {}},
		"arbitrate, look":   {At: "time", Unsent: true},
		"mover":             {At: "evalsha", After: func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.push("a", "b", "c")
			way, _, _ := strings.Cut(name, ",")
			c, err := ways(b.faulty(f))[way](b.ctx, 2, time.Minute, "mine")
			if name == "arbitrate, look" && err != nil {
				return // nothing is lost before the bid
			}
			if err != nil || len(c.Deliveries) != 2 || c.Deliveries[0].ID != "a" || c.Deliveries[1].Attempt != 1 {
				t.Fatalf("got %+v, %v", c, err)
			}
			b.all(b.Ack(b.ctx, []backend.Lease{c.Deliveries[0].Lease(), c.Deliveries[1].Lease()}))
			b.ack(b.next(b.MoveAndTake, time.Minute, "c"))
			b.empty()
		})
	}
}

// TestClaimLosesItsReplyAndTheClockJumps has a given clock jump before a claim is repeated.
func TestClaimLosesItsReplyAndTheClockJumps(t *testing.T) {
	t.Parallel()
	b, clock := setup(t), clockwork.NewFakeClock()
	f := redistest.LostReply(func() { clock.Advance(time.Hour) })
	s := store.New(store.Config{Client: f.Client(t, b.raw), Prefix: "test"}, t.Name(), clock)
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Due: clock.Now()}}))
	if c, err := s.Claim(b.ctx, 1, 2*time.Hour, "mine"); err != nil || len(c.Deliveries) != 1 || !f.Met() {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestRepeatedClaimReadsFewLeases repeats a claim on a queue with many messages in flight. It reads those
// alone that its first try can have leased.
func TestRepeatedClaimReadsFewLeases(t *testing.T) {
	for how, lost := range map[string]struct {
		command string
		nth     int64
	}{"script": {"evalsha", 1}, "arbitrate": {"multi", 1}, "mover": {"evalsha", 2}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const many = 200
			b := on(t, testenv.Redis(t, testenv.Private()))
			others := make([]string, many)
			for i := range others {
				others[i] = fmt.Sprint("other ", i)
			}
			b.push(others...)
			for range many / 100 {
				b.claim(ways(b.Store)[how], time.Hour)
			}
			b.push("a", "b")
			client, left := redistest.Another(t, b.raw), lost.nth
			client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
				err := send()
				if cmd.Name() == lost.command {
					if left--; left == 0 {
						return io.EOF
					}
				}
				return err
			}))
			stop := redistest.Monitor(t, b.raw)
			c, err := ways(b.with(client))[how](b.ctx, 2, time.Minute, "mine")
			if err != nil || len(c.Deliveries) != 2 || c.Deliveries[0].ID != "a" || left > 0 {
				t.Fatalf("got %+v, %v", c, err)
			}
			for _, line := range stop() {
				if n := strings.Count(line, `" "`); strings.Contains(line, b.key("held")) && (n > many/2 || strings.Contains(line, "HGETALL")) {
					t.Errorf("it reads %d leases by %.60s", n, line)
				}
			}
		})
	}
}
