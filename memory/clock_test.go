package memory

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// A wallClock is a machine's: it may be set, and timers do not notice.
type wallClock struct {
	*clockwork.FakeClock
	set atomic.Int64
}

func newWallClock() *wallClock { return &wallClock{FakeClock: clockwork.NewFakeClockAt(epoch)} }

func (c *wallClock) Now() time.Time { return c.FakeClock.Now().Add(time.Duration(c.set.Load())) }

func (c *wallClock) jump(d time.Duration) { c.set.Add(int64(d)) }

// settled waits until the timer that fired has been set again.
func (c *wallClock) settled(t *testing.T) {
	t.Helper()
	must(t, c.BlockUntilContext(context.Background(), 1))
}

// After a jump forward the timer is late by the clock, and after one back far ahead: neither the
// waiting message nor one that is pushed then may rely on it.
func TestWallClockIsSet(t *testing.T) {
	for name, c := range map[string]struct {
		delay, jump, push time.Duration
		advances          []time.Duration // the last one makes the message due
	}{
		"forward":              {delay: time.Hour, jump: time.Hour, advances: []time.Duration{maxSleep}},
		"forward, then a push": {delay: 24 * time.Hour, jump: time.Hour, push: time.Second, advances: []time.Duration{time.Second}},
		"back": {delay: 10 * time.Second, jump: -5 * time.Minute, advances: []time.Duration{
			10 * time.Second, time.Minute, time.Minute, time.Minute, time.Minute, time.Minute,
		}},
		"back, then a push": {delay: 30 * time.Second, jump: -time.Hour, push: time.Second, advances: []time.Duration{time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newWallClock()
			q := openOn(t, New(), clock)
			want := "a"
			mustPush(t, q, want, c.delay)
			got := receive(context.Background(), t, q)
			clock.settled(t)
			clock.jump(c.jump)
			if c.push > 0 {
				want = "b"
				mustPush(t, q, want, c.push)
			}
			for i, d := range c.advances {
				if i > 0 {
					clock.settled(t)
				}
				if len(got) > 0 {
					t.Fatalf("handed out at %v, before it was due", clock.Now())
				}
				clock.Advance(d)
			}
			mustGet(t, got, want)
		})
	}
}

// A jumpy clock jumps when a timer is about to start, as a fake one may that a test
// advances meanwhile.
type jumpy struct {
	*clockwork.FakeClock
	by atomic.Int64 // once
}

func (c *jumpy) jump() { c.Advance(time.Duration(c.by.Swap(0))) }

func (c *jumpy) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.jump()
	return jumpyTimer{c.FakeClock.AfterFunc(d, f), c}
}

type jumpyTimer struct {
	clockwork.Timer
	clock *jumpy
}

func (t jumpyTimer) Reset(d time.Duration) bool {
	t.clock.jump()
	return t.Timer.Reset(d)
}

func TestJumpBeforeTheTimerStarts(t *testing.T) {
	for _, c := range []struct {
		name  string
		again bool // the timer has run before
		by    time.Duration
	}{
		{"first start, past the due time", false, time.Hour},
		{"first start, short of it", false, 10 * time.Second},
		{"next start, past the due time", true, time.Hour},
		{"next start, short of it", true, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := &jumpy{FakeClock: clockwork.NewFakeClockAt(epoch)}
			q := openOn(t, New(), clock)
			if c.again {
				mustPush(t, q, "before", time.Second)
				got := receive(context.Background(), t, q)
				clock.Advance(time.Second)
				d := mustGet(t, got, "before")
				mustAll(t, q.Ack(context.Background(), []backend.Lease{d.Lease()}))
			}
			mustPush(t, q, "a", 30*time.Second)
			clock.by.Store(int64(c.by))
			got := receive(context.Background(), t, q)
			eventually(t, "the clock jumps", func() bool { return clock.by.Load() == 0 })
			clock.Advance(max(0, 30*time.Second-c.by))
			mustGet(t, got, "a")
		})
	}
}

// A clock that runs on while it is read, thousands of times faster than the real one.
type rushing struct {
	clockwork.Clock
	reads atomic.Int64
}

func (c *rushing) Now() time.Time { return epoch.Add(time.Duration(c.reads.Add(1)) * time.Second) }

func TestClockThatNeverStandsStill(t *testing.T) {
	q := openOn(t, New(), &rushing{Clock: clockwork.NewRealClock()})
	mustPush(t, q, "a", 20*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if ds, err := q.Receive(ctx, 1, time.Minute); err == nil {
		t.Logf("got %v", ds)
	}
}

// A batch takes a while to store; messages due when it is stored must not wait as long again.
func TestTimerStartsFromNow(t *testing.T) {
	clock := &slow{FakeClock: clockwork.NewFakeClockAt(epoch)}
	q := openOn(t, New(), clock)
	got := receive(context.Background(), t, q)
	clock.next.Store(int64(8 * time.Millisecond))
	mustPush(t, q, "a", 10*time.Millisecond)
	clock.Advance(2 * time.Millisecond)
	mustGet(t, got, "a")
}

// A slow clock is right, and then much time passes at once.
type slow struct {
	*clockwork.FakeClock
	next atomic.Int64
}

func (c *slow) Now() time.Time {
	now := c.FakeClock.Now()
	if d := c.next.Swap(0); d > 0 {
		c.Advance(time.Duration(d))
	}
	return now
}

// The first and the last time that fit into nanoseconds since 1970.
func TestTimesAtTheEnds(t *testing.T) {
	for _, start := range []time.Time{
		time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(0, 0),
		time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		clock := clockwork.NewFakeClockAt(start)
		q := openOn(t, New(), clock)
		mustPush(t, q, "endless", backend.MaxDelay)
		got := receive(context.Background(), t, q)
		mustPush(t, q, "soon", time.Second)
		must(t, clock.BlockUntilContext(context.Background(), 1))
		clock.Advance(time.Second)
		mustGet(t, got, "soon")
	}
}
