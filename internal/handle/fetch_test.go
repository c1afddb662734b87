package handle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// One claim is for all Receives of the lease that the first one wants. The others come next.
func TestOneClaimForAllReceives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, &store{reply: func(n int, c *Claim) error {
			switch n {
			case 0:
				c.Next = c.Now.Add(time.Second)
			case 1:
				c.Deliveries = deliveries(0, 5)
			case 2:
				c.Deliveries = deliveries(5, 6)
			}
			return nil
		}})
		first, hour, last := f.receive(t.Context(), 2), f.receiveFor(t.Context(), 9, time.Hour), f.receive(t.Context(), 3)
		after(time.Second)
		equal(t, "claims", f.store.asked, []asked{{0, 2, time.Minute}, {time.Second, 5, time.Minute}, {time.Second, 9, time.Hour}})
		equal(t, "first", ids((<-first).ds), []string{"0", "1"})
		equal(t, "hour", ids((<-hour).ds), []string{"5"})
		equal(t, "last", ids((<-last).ds), []string{"2", "3", "4"})
	})
}

// A claim that ends after Close is given back, though a Receive has not left yet.
func TestDeliverAllAfterClose(t *testing.T) {
	t.Parallel()
	f := open(t, new(store))
	w := &waiter{limit: 2, lease: time.Minute, got: make(chan received, 1)}
	if err := f.enter(w); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.deliverAll(deliveries(0, 2), time.Minute)
	if len(w.got) > 0 {
		t.Errorf("the Receive got %v", <-w.got)
	}
	equal(t, "given back", f.store.returned(), []string{"0 true", "1 true"})
}

// Messages go to the Receives in the order of their calls, to those of the claim's lease alone.
func TestDeliverAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		messages int
		want     []int // messages of each Receive
		waiting  int   // Receives that still wait
		back     []string
	}{
		{0, []int{0, 0, 0}, 3, nil},
		{1, []int{1, 0, 0}, 2, nil},
		{2, []int{2, 0, 0}, 2, nil},
		{4, []int{2, 0, 2}, 1, nil},
		{7, []int{2, 0, 3}, 1, []string{"5 true", "6 true"}},
	} {
		f := open(t, new(store))
		waiters := []*waiter{{limit: 2, lease: time.Minute}, {limit: 9, lease: time.Hour}, {limit: 3, lease: time.Minute}}
		for _, w := range waiters {
			w.got = make(chan received, 1)
			if err := f.enter(w); err != nil {
				t.Fatal(err)
			}
		}
		if limit, lease := f.wanted(); limit != 5 || lease != time.Minute {
			t.Errorf("wanted %d for %v", limit, lease)
		}
		f.deliverAll(deliveries(0, tt.messages), time.Minute)
		next := 0
		for i, w := range waiters {
			var got []backend.Delivery
			if len(w.got) > 0 {
				got = (<-w.got).ds
			}
			equal(t, "a Receive", ids(got), ids(deliveries(next, next+tt.want[i])))
			next += tt.want[i]
		}
		if len(f.waiting) != tt.waiting {
			t.Errorf("%d messages: %d wait, want %d", tt.messages, len(f.waiting), tt.waiting)
		}
		equal(t, "given back", f.store.returned(), tt.back)
	}
}

// A sleeper claims when the next event of its claim happens, when a wake-up says so, and at the
// hub's interval. Times are since the first claim, by the store's clock.
func TestSleep(t *testing.T) {
	t.Parallel()
	type wake struct{ at, due time.Duration }
	const never, now = time.Duration(0), time.Duration(-1)
	for name, tt := range map[string]struct {
		next  time.Duration
		wakes []wake
		want  time.Duration // of the second claim
	}{
		"nothing":               {never, nil, poll},
		"next":                  {10 * time.Second, nil, 10 * time.Second},
		"next is far":           {time.Hour, nil, poll},
		"woken for nearer":      {10 * time.Second, []wake{{time.Second, 5 * time.Second}}, 5 * time.Second},
		"woken for farther":     {10 * time.Second, []wake{{time.Second, 15 * time.Second}}, 10 * time.Second},
		"woken without a next":  {never, []wake{{time.Second, 15 * time.Second}}, 15 * time.Second},
		"woken twice, nearer":   {never, []wake{{time.Second, 9 * time.Second}, {2 * time.Second, 5 * time.Second}}, 5 * time.Second},
		"woken twice, farther":  {never, []wake{{time.Second, 5 * time.Second}, {2 * time.Second, 9 * time.Second}}, 5 * time.Second},
		"woken for now":         {10 * time.Second, []wake{{3 * time.Second, now}}, 3 * time.Second},
		"woken for now, before": {10 * time.Second, []wake{{time.Second, 9 * time.Second}, {3 * time.Second, now}}, 3 * time.Second},
		"woken for the past":    {10 * time.Second, []wake{{3 * time.Second, 2 * time.Second}}, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := open(t, &store{reply: func(_ int, c *Claim) error {
					if tt.next != never {
						c.Next = c.Now.Add(tt.next)
					}
					return nil
				}})
				began := time.Now().Add(ahead)
				f.receive(t.Context(), 1)
				for _, w := range tt.wakes {
					after(time.Until(began.Add(w.at - ahead)))
					due := began.Add(w.due)
					if w.due == now {
						due = time.Time{}
					}
					f.hub.Wake("orders", due)
				}
				after(time.Until(began.Add(tt.want - ahead)))
				equal(t, "claims", f.store.claims(), []time.Duration{0, tt.want})
			})
		})
	}
}

// What a wake-up tells is known to a claim that begins later, and not to one that is under way.
func TestWakeUpBeforeAndDuringAClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f fixture
		f = open(t, &store{reply: func(n int, c *Claim) error {
			switch n {
			case 0:
				c.Deliveries = deliveries(0, 1)
			case 1:
				f.hub.Wake("orders", c.Now.Add(5*time.Second))
			case 2:
				f.hub.WakeAll()
			}
			return nil
		}})
		f.receive(t.Context(), 1)
		f.hub.Wake("orders", time.Time{}) // while none waits
		f.hub.Wake("orders", time.Now().Add(ahead))
		f.receive(t.Context(), 1)
		after(poll)
		equal(t, "claims", f.store.claims(), []time.Duration{0, 0, 5 * time.Second, 5 * time.Second})
		after(5 * time.Second)
		equal(t, "claims", f.store.claims()[4:], []time.Duration{poll + 5*time.Second})
	})
}

// A wake-up keeps the first due time. One for at once is before all, and one of an earlier claim
// is none.
func TestWakeKeepsTheFirstDueTime(t *testing.T) {
	t.Parallel()
	f := open(t, new(store))
	soon, late := time.Unix(1000, 0), time.Unix(2000, 0)
	for _, tt := range []struct {
		due, want time.Time
		woken     int
	}{{late, late, 1}, {soon, soon, 1}, {late, soon, 0}, {time.Time{}, lookNow, 1}, {soon, lookNow, 0}} {
		f.wake(tt.due)
		if got := f.wakeTime(); !got.Equal(tt.want) || len(f.woken) != tt.woken {
			t.Errorf("woken for %v: %v, want %v; %d signals", tt.due, got, tt.want, len(f.woken))
		}
		if tt.woken > 0 {
			<-f.woken
		}
	}
	f.wanted()
	if got := f.wakeTime(); !got.Equal(backend.LatestDue) {
		t.Errorf("no wake-up since the last claim: %v", got)
	}
}

// On a fake clock a sleeper claims at the next event to the nanosecond, though the store's time is
// in microseconds, and though the clock jumped during the claim.
func TestFakeClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		due := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		clock := clockwork.NewFakeClockAt(due.Add(-time.Second + time.Nanosecond))
		f := open(t, &store{reply: func(n int, c *Claim) error {
			c.Now, c.Next = clock.Now().Truncate(time.Microsecond), due
			if n == 1 {
				c.Next = due.Add(time.Second)
				clock.Advance(time.Minute)
			}
			if n > 1 {
				c.Next = time.Time{}
			}
			return nil
		}}, on(clock))
		f.receive(t.Context(), 1)
		clock.Advance(time.Second - 2*time.Nanosecond)
		after(0)
		equal(t, "claims before the event", f.store.claims(), []time.Duration{0})
		clock.Advance(time.Nanosecond)
		after(0)
		equal(t, "claims at the event, and after the jump", f.store.claims(), []time.Duration{0, 0, 0})
	})
}

// A jumping clock jumps when a timer is about to be set.
type jumping struct {
	*clockwork.FakeClock
	by time.Duration
}

func (j *jumping) NewTimer(d time.Duration) clockwork.Timer {
	j.Advance(j.by)
	j.by = 0
	return j.FakeClock.NewTimer(d)
}

// A sleeper sees that a fake clock has jumped to the next event just before its timer was set.
func TestFakeClockThatJumps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := &jumping{clockwork.NewFakeClock(), time.Minute}
		f := open(t, &store{reply: func(_ int, c *Claim) error {
			c.Now = clock.Now()
			c.Next = c.Now.Add(time.Minute)
			return nil
		}}, on(clock))
		f.receive(t.Context(), 1)
		equal(t, "claims", f.store.claims(), []time.Duration{0, 0})
	})
}

// While a fake clock stands still, other processes push in real time.
func TestFakeClockThatStands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := clockwork.NewFakeClock()
		f := open(t, &store{reply: func(_ int, c *Claim) error {
			c.Now = clock.Now()
			c.Next = c.Now.Add(time.Second)
			return nil
		}}, on(clock))
		f.receive(t.Context(), 1)
		after(2 * poll)
		equal(t, "claims", f.store.claims(), []time.Duration{0, poll, 2 * poll})
	})
}

// The error of a claim is that of all Receives. The next ones claim again.
func TestErrorOfAClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken, hold := errors.New("broken"), make(chan struct{})
		f := open(t, &store{reply: func(n int, c *Claim) error {
			if n == 0 {
				<-hold
				return broken
			}
			c.Deliveries = deliveries(0, 1)
			return nil
		}})
		all := []<-chan received{f.receive(t.Context(), 1), f.receive(t.Context(), 1), f.receiveFor(t.Context(), 1, time.Hour)}
		close(hold)
		for _, got := range all {
			if r := <-got; !errors.Is(r.err, broken) || r.ds != nil {
				t.Errorf("got %v", r)
			}
		}
		if r := <-f.receive(t.Context(), 1); r.err != nil || len(r.ds) != 1 {
			t.Errorf("after the error: %v", r)
		}
	})
}

// Messages that a claim brings for a Receive that has ended are given back untouched.
func TestReceiveThatEndsDuringAClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hold := make(chan struct{})
		f := open(t, &store{fail: errors.New("away"), reply: func(n int, c *Claim) error {
			<-hold
			c.Deliveries = deliveries(0, 2)
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		got := f.receive(ctx, 2)
		cancel()
		if r := <-got; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v", r)
		}
		close(hold)
		after(2 * poll)
		equal(t, "given back", f.store.returned(), []string{"0 true", "1 true"})
		equal(t, "claims", f.store.claims(), []time.Duration{0})
		if n := strings.Count(f.log.String(), "giving a message back failed"); n != 2 {
			t.Errorf("the log has %q", f.log)
		}
	})
}

// A reply that took as long as the leases brings nothing to hand out.
func TestReplyAfterTheLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, &store{reply: func(n int, c *Claim) error {
			time.Sleep(time.Duration(2-n) * time.Minute / 2) // of the bubble: the reply takes as long
			c.Deliveries = deliveries(n, n+1)
			return nil
		}})
		got := f.receive(t.Context(), 1)
		if r := <-got; r.err != nil || len(r.ds) != 1 || r.ds[0].ID != "1" {
			t.Errorf("got %v", r)
		}
		equal(t, "given back", f.store.returned(), []string{"0 true"})
		equal(t, "claims", f.store.claims(), []time.Duration{0, time.Minute})
	})
}

// A Receive that gives up in the moment in which it is served returns what it got.
func TestReceiveThatIsServedAtItsEnd(t *testing.T) {
	t.Parallel()
	f := open(t, new(store))
	w := &waiter{limit: 2, lease: time.Minute, got: make(chan received, 1)}
	if err := f.enter(w); err != nil {
		t.Fatal(err)
	}
	f.deliverAll(deliveries(0, 1), time.Minute)
	if ds, err := f.leave(w, context.Canceled); err != nil || len(ds) != 1 {
		t.Errorf("got %v, %v", ds, err)
	}
	for range 2 {
		if err := f.enter(w); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.leave(w, context.Canceled); !errors.Is(err, context.Canceled) || len(f.waiting) != 1 {
		t.Errorf("got %v; %d wait", err, len(f.waiting))
	}
}

// Without a Receive nothing is asked.
func TestNoReceive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, serves())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := <-f.receive(ctx, 1); !errors.Is(r.err, context.Canceled) || f.hub.Handles() != 0 {
			t.Errorf("an ended context: %v; %d handles with a fetcher", r, f.hub.Handles())
		}
		<-f.receive(t.Context(), 1)
		f.hub.WakeAll()
		after(3 * poll)
		equal(t, "claims", f.store.claims(), []time.Duration{0})
	})
}
