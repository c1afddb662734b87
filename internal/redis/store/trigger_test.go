package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// triggered is a queue whose head has a trigger.
func triggered(t *testing.T, server *testenv.RedisServer) *bench {
	t.Helper()
	b := on(t, server)
	b.Store = store.New(store.Config{Client: b.raw, Triggered: true, Prefix: "test"}, t.Name(), nil)
	return b
}

// triggerLeft returns how long the trigger has to live; negative where there is none.
func (b *bench) triggerLeft() time.Duration {
	b.t.Helper()
	left, err := b.raw.PTTL(b.ctx, b.key("trigger")).Result()
	must(b.t, err)
	return left
}

// goesAfter checks when the trigger expires, to within the delays of a busy machine. A script may
// take a moment from reading the clock to setting the key.
func (b *bench) goesAfter(want time.Duration) {
	b.t.Helper()
	const slack = 5 * time.Minute
	if left := b.triggerLeft(); left > want+time.Second || left < want-slack {
		b.t.Errorf("the trigger goes in %v, want %v", left, want)
	}
}

func (b *bench) cancel(ids ...string) {
	b.t.Helper()
	b.all(b.Cancel(b.ctx, ids))
}

func (b *bench) move(id string, delay time.Duration) {
	b.t.Helper()
	b.all(b.Reschedule(b.ctx, []backend.Move{{ID: id, Delay: delay}}))
}

func (b *bench) nack(d backend.Delivery, delay time.Duration) {
	b.t.Helper()
	b.all(b.Nack(b.ctx, []backend.Return{{Lease: d.Lease(), Delay: delay}}))
}

func (b *bench) deadLetter(d backend.Delivery) {
	b.t.Helper()
	b.all(b.Dead(b.ctx, []backend.DeadLetterRequest{{Lease: d.Lease()}}))
}

func TestOneTriggerForManyMessages(t *testing.T) {
	t.Parallel()
	b := triggered(t, testenv.SharedRedis(t))
	const n = 10_000
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[(i*7919)%n] = backend.Message{ID: fmt.Sprint("m", i), Delay: time.Hour * time.Duration(i+1)}
	}
	b.all(b.Schedule(b.ctx, ms))
	b.goesAfter(time.Hour)
	if keys := b.left(); len(keys) != 4 {
		t.Errorf("%d keys for %d messages, want due, messages, seq and trigger: %.500q", len(keys), n, keys)
	}
}

// heads are the ways in which another message becomes the head: then the trigger goes when that is
// due, or before.
var heads = map[string]struct {
	change func(*bench)
	want   time.Duration
}{
	"pushed first":  {func(*bench) {}, 10 * time.Hour},
	"pushed later":  {func(b *bench) { b.pushAfter(20*time.Hour, "b") }, 10 * time.Hour},
	"pushed before": {func(b *bench) { b.pushAfter(5*time.Hour, "b") }, 5 * time.Hour},
	"pushed before, in one batch": {func(b *bench) {
		b.all(b.Schedule(b.ctx, []backend.Message{{ID: "b", Delay: 8 * time.Hour}, {ID: "c", Delay: 3 * time.Hour}, {ID: "d", Delay: 4 * time.Hour}}))
	}, 3 * time.Hour},
	"a repeated push": {func(b *bench) { _ = b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour}}) }, 10 * time.Hour},
	"the head cancelled": {func(b *bench) {
		b.pushAfter(5*time.Hour, "b")
		b.cancel("b")
	}, 5 * time.Hour}, // no script sets it: it goes early
	"the head cancelled, and a claim": {func(b *bench) {
		b.pushAfter(5*time.Hour, "b")
		b.cancel("b")
		b.nothing(b.Claim)
	}, 5 * time.Hour},
	"one pushed behind a head that is cancelled": {func(b *bench) {
		b.pushAfter(5*time.Hour, "b")
		b.cancel("a", "b")
		b.pushAfter(7*time.Hour, "c")
	}, 7 * time.Hour},
	"the head moved on, alone":          {func(b *bench) { b.move("a", 20*time.Hour) }, 20 * time.Hour},
	"the head moved back":               {func(b *bench) { b.move("a", 2*time.Hour) }, 2 * time.Hour},
	"the head moved behind another":     {func(b *bench) { b.pushAfter(15*time.Hour, "b"); b.move("a", 20*time.Hour) }, 10 * time.Hour},
	"another moved before the head":     {func(b *bench) { b.pushAfter(15*time.Hour, "b"); b.move("b", 4*time.Hour) }, 4 * time.Hour},
	"another moved, behind the head":    {func(b *bench) { b.pushAfter(15*time.Hour, "b"); b.move("b", 12*time.Hour) }, 10 * time.Hour},
	"another pushed, due at once":       {func(b *bench) { b.push("b") }, 10 * time.Hour},
	"the head moved to be due at once":  {func(b *bench) { b.pushAfter(15*time.Hour, "b"); b.move("a", 0) }, 10 * time.Hour},
	"one claimed that was due at once":  {func(b *bench) { b.push("b"); b.next(b.Claim, time.Minute, "b") }, 10 * time.Hour},
	"nacked, and first":                 {func(b *bench) { b.push("b"); b.nack(b.next(b.Claim, time.Minute, "b"), 6*time.Hour) }, 6 * time.Hour},
	"nacked, and not first":             {func(b *bench) { b.push("b"); b.nack(b.next(b.Claim, time.Minute, "b"), 11*time.Hour) }, 10 * time.Hour},
	"redriven, and nacked":              {func(b *bench) { b.nack(b.revived("b"), 6*time.Hour) }, 6 * time.Hour},
	"claimed when the trigger was lost": {func(b *bench) { b.raw.Del(b.ctx, b.key("trigger")); b.nothing(b.Claim) }, 10 * time.Hour},
	"claimed when it would not go":      {func(b *bench) { b.raw.Persist(b.ctx, b.key("trigger")); b.nothing(b.Claim) }, 10 * time.Hour},
	"claimed when it would go too late": {func(b *bench) { b.raw.PExpire(b.ctx, b.key("trigger"), 11*time.Hour); b.nothing(b.Claim) }, 10 * time.Hour},
	"pushed by zsetpoll, without a trigger": {func(b *bench) {
		b.all(b.with(b.raw).Schedule(b.ctx, []backend.Message{{ID: "b", Delay: 5 * time.Hour}}))
		b.nothing(b.Claim)
	}, 5 * time.Hour},
}

// revived is a message that was dead, and is held again.
func (b *bench) revived(id string) backend.Delivery {
	b.t.Helper()
	b.push(id)
	b.deadLetter(b.next(b.Claim, time.Minute, id))
	b.all(b.Redrive(b.ctx, []string{id}))
	return b.next(b.Claim, time.Minute, id)
}

func TestTriggerFollowsTheHead(t *testing.T) {
	t.Parallel()
	for name, h := range heads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := triggered(t, testenv.SharedRedis(t))
			b.pushAfter(10*time.Hour, "a")
			h.change(b)
			b.goesAfter(h.want)
		})
	}
}

// A claim that leaves due messages keeps the trigger, and does not set it to a later message.
func TestTriggerOfMessagesLeftByAClaim(t *testing.T) {
	t.Parallel()
	b := triggered(t, testenv.SharedRedis(t))
	b.pushAfter(time.Hour, "later")
	const delay = 300 * time.Millisecond // of the server's clock: a push that took longer would still set the trigger
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: delay}, {ID: "b", Delay: delay, Body: []byte("body of b")}}))
	for end := time.Now().Add(patience); ; {
		c, err := b.Claim(b.ctx, 1, time.Minute, "claim")
		must(b.t, err)
		if len(c.Deliveries) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing comes")
		}
		b.napUntil(c)
	}
	const soon = time.Minute
	if left := b.triggerLeft(); left > soon {
		t.Errorf("a message is due, and the trigger goes in %v", left)
	}
	b.next(b.Claim, time.Minute, "b")
	// where it was about to go, it is set after that
	for end := time.Now().Add(patience); b.triggerLeft() <= soon && time.Now().Before(end); {
		b.nothing(b.Claim)
	}
	b.goesAfter(time.Hour)
}

func TestNoTriggerOfADrainedQueue(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]func(*bench){
		"cancelled": func(b *bench) { b.cancel("a") },
		"acked":     func(b *bench) { b.move("a", 0); b.ack(b.next(b.Claim, time.Minute, "a")) },
		"dead and deleted": func(b *bench) {
			b.move("a", 0)
			b.deadLetter(b.next(b.Claim, time.Minute, "a"))
			b.all(b.DeleteDead(b.ctx, []string{"a"}))
		},
		"purged": func(b *bench) {
			_, err := b.Purge(b.ctx)
			must(b.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := triggered(t, testenv.SharedRedis(t))
			b.pushAfter(time.Hour, "a")
			b.goesAfter(time.Hour)
			drain(b)
			b.empty()
		})
	}
}

// A server that is out of memory sets no trigger. Its claims must not fail for that.
func TestClaimWhereNoTriggerCanBeSet(t *testing.T) {
	t.Parallel()
	b := triggered(t, testenv.Redis(t, testenv.Private()))
	b.pushAfter(time.Hour, "a")
	must(b.t, b.raw.Del(b.ctx, b.key("trigger")).Err(), b.raw.ConfigSet(b.ctx, "maxmemory", "1").Err())
	b.nothing(b.Claim)
	if left := b.triggerLeft(); left >= 0 {
		t.Fatalf("the server was not full: the trigger goes in %v", left)
	}
	must(b.t, b.raw.ConfigSet(b.ctx, "maxmemory", "0").Err())
	b.nothing(b.Claim)
	b.goesAfter(time.Hour)
}

// Only the trigger's own name is a trigger: neither a longer name, nor another key of the queue
// that expires.
func TestTriggered(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"delayq:{q}:trigger": "delayq:{q}:wake", "p:{a}:trigger}:trigger": "p:{a}:trigger}:wake",
		"delayq:{q}:trigger:m": "", "delayq:{q}:unique": "", "trigger": "", "delayq:q:trigger": "",
	} {
		if channel, ok := store.Triggered(key); ok != (want != "") || ok && channel != want {
			t.Errorf("%q is the trigger of %q, %v; want %q", key, channel, ok, want)
		}
	}
}

// TestExtendToASoonerEndTells has sleepers hear of the first lease's end where it comes sooner, and not where a
// lease is renewed.
func TestExtendToASoonerEndTells(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a", "b")
	ds := b.claim(b.Claim, time.Hour).Deliveries
	heard := b.raw.Subscribe(b.ctx, b.Channel())
	t.Cleanup(func() { _ = heard.Close() })
	_, err := heard.Receive(b.ctx)
	must(t, err)
	extend := func(i int, lease time.Duration) time.Time {
		ends, errs := b.Extend(b.ctx, []backend.Lease{ds[i].Lease()}, lease)
		b.all(errs)
		return ends[0]
	}
	for i, first := range []time.Duration{50 * time.Minute, 40 * time.Minute} {
		extend(i, 2*time.Hour)
		end := extend(i, first)
		extend(1-i, 45*time.Minute+first) // the other, whose lease is not the first
		if m, err := heard.ReceiveMessage(b.ctx); err != nil || m.Payload != fmt.Sprint(end.UnixMilli()) {
			t.Errorf("sleepers hear %v, %v, want %v", m, err, end)
		}
	}
}
