package redisson_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint("body ", i)
	}
	return texts
}

// handedKey is the list of the destination's members.
func (p *place) handedKey() string { return p.own("handed") }

// A burst without a worker of ours goes to Java a part at a time, in order.
func TestBurstIsHandedOver(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, f redisson.MemberFormat) {
		q := p.open(redisson.Format(f))
		want := numbered(1200)
		p.push(q, 0, want...)
		await(t, "the first part", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 500 })
		for i := 0; i < len(want); {
			items, err := p.raw.LPopCount(p.ctx, p.name, 10).Result()
			if errors.Is(err, redis.Nil) { // the next part is on its way
				continue
			}
			must(t, err)
			for _, got := range items {
				if got != want[i] {
					t.Fatalf("item %d is %q, want %q", i, got, want[i])
				}
				i++
			}
			if n := p.raw.LLen(p.ctx, p.name).Val(); n > 500 {
				t.Fatalf("%d items lie in the destination list", n)
			}
		}
		p.empty()
	})
}

// HANDED tells no more than the destination has, whether Go or Java takes from it.
func TestHandedMessageIsForgotten(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	p.push(q, time.Hour, "far") // so that the queue is never empty
	for round := range 5 {
		want := numbered(20)
		p.push(q, 0, want...)
		await(t, "the hand-over", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 20 })
		p.pops(want[:15]...)
		p.push(q, 0, "more")
		await(t, "one more", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 6 })
		if n := p.raw.LLen(p.ctx, p.handedKey()).Val(); n > 6 {
			t.Errorf("round %d: %d entries for 6 items", round, n)
		}
		p.takes(q, append(want[15:], "more")...)
		if n := p.raw.LLen(p.ctx, p.handedKey()).Val(); n != 0 {
			t.Errorf("round %d: %d entries for no items", round, n)
		}
	}
}

// Java takes messages with states: the states are forgotten though the queue is never empty.
func TestJavaTakesMessagesAndTheirStatesGo(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.Sweep(10 * time.Millisecond))
	p.push(q, time.Hour, "far")
	want := numbered(10)
	p.push(q, 0, want...)
	ds := p.take(q, 10, time.Minute)
	must(t, q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: ds[9].Lease()}})...)
	must(t, q.Nack(p.ctx, redistest.Returns(leases(ds[:9]), backend.Return{}))...)
	must(t, q.Redrive(p.ctx, []string{ds[9].ID})...)
	await(t, "the hand-over", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 10 })
	if n := p.raw.HLen(p.ctx, p.own("states")).Val(); n != 11 { // an alias
		t.Errorf("%d states", n)
	}
	p.pops(want...)
	await(t, "the states", func() bool { return p.raw.HLen(p.ctx, p.own("states")).Val() == 0 })
}

// A worker that starts late gets the destination's messages as if it had started earlier.
func TestLateWorkerGetsHandedOverMessages(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, _ redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		ids := p.push(q, 0, "a", "b", "c")
		first := p.take(q, 3, time.Minute)
		must(p.t, q.Nack(p.ctx, []backend.Return{
			{Lease: first[0].Lease(), Untouched: true}, {Lease: first[1].Lease(), Delay: time.Millisecond}, {Lease: first[2].Lease(), Untouched: true},
		})...)
		p.handed("a", "c", "b")
		again := p.takes(q, "a", "c", "b")
		for i, want := range []struct {
			id      string
			attempt int
			due     time.Time
		}{{ids[0], 1, first[0].Due}, {ids[2], 1, first[2].Due}, {ids[1], 2, again[2].Due}} {
			if d := again[i]; d.ID != want.id || d.Attempt != want.attempt || !d.Due.Equal(want.due) {
				p.t.Errorf("got %s, attempt %d, due %v; want %+v", d.ID, d.Attempt, d.Due, want)
			}
		}
		p.empty()
	})
}

func TestIdenticalPayloads(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	same := slices.Repeat([]string{"same"}, 10)
	ids := p.push(q, 0, same...)
	p.handed(same...)
	p.pops(same[:3]...)
	p.takes(q, same[:5]...)
	if err := errors.Join(q.Cancel(p.ctx, ids[8:])...); err != nil {
		t.Error(err)
	}
	p.empty()
}

// Java has taken the item before which one that came back belongs, and has put one of its own
// behind it.
func TestReturnedMessageIsNotLost(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, _ redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		p.push(q, 0, "older")
		held := p.take(q, 1, time.Minute)
		p.push(q, 5*time.Millisecond, "younger")
		p.handed("younger")
		must(p.t, p.raw.RPush(p.ctx, p.name, "Java's").Err())
		p.pops("younger")
		must(p.t, q.Nack(p.ctx, []backend.Return{{Lease: held[0].Lease(), Untouched: true}})...)
		await(p.t, "the hand-over", func() bool { return len(p.members()) == 0 })
		got := bodies(p.take(q, 1, time.Minute))
		got = append(got, bodies(p.take(q, 1, time.Minute))...)
		if !sameSet(got, []string{"older", "Java's"}) {
			p.t.Errorf("got %q", got)
		}
	})
}

// And where nothing has happened to that item, it goes there.
func TestReturnedMessageKeepsItsPlace(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	p.push(q, 0, "a")
	held := p.take(q, 1, time.Minute)
	p.push(q, 5*time.Millisecond, "b", "c")
	p.handed("b", "c")
	must(t, q.Nack(p.ctx, []backend.Return{{Lease: held[0].Lease(), Untouched: true}})...)
	p.handed("a", "b", "c")
	if ds := p.takes(q, "a", "b", "c"); ds[0].ID != held[0].ID {
		t.Errorf("got %+v, want %s", ds, held[0].ID)
	}
	p.empty()
}

// A pause holds back Go's workers, not Java's: what falls due is handed over, also where a worker of
// Go waits, which gets messages again when the pause ends.
func TestPausedQueueIsHandedOver(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	must(t, q.PauseAll(p.ctx, backend.Pause{For: time.Hour}))
	got := make(chan string, 1)
	go func() {
		ds, err := q.Receive(p.ctx, 1, time.Minute)
		got <- fmt.Sprint(bodies(ds), err)
	}()
	for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
		p.push(q, delay, "first")
		p.push(q, delay+time.Millisecond, "second")
		p.handed("first", "second")
		p.pops("first", "second")
	}
	must(t, q.ResumeAll(p.ctx))
	p.push(q, 0, "for Go")
	if text := <-got; text != "[for Go] <nil>" {
		t.Errorf("got %s", text)
	}
}
