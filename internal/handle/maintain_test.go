package handle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// maintain opens a handle that is maintained when it is idle for ten seconds. do is told how often it
// was before.
func maintain(t *testing.T, s *store, do func(n int, c *Claim) error, tune ...func(*Source)) fixture {
	t.Helper()
	f := open(t, s, append(tune, func(source *Source) {
		source.IdleFor = 10 * time.Second
		source.Maintain = func(context.Context) (Claim, error) {
			s.mu.Lock()
			n := len(s.kept)
			s.kept = append(s.kept, time.Since(s.began))
			s.mu.Unlock()
			c := Claim{Now: time.Now().Add(ahead)}
			err := do(n, &c)
			return c, err
		}
	})...)
	f.Start()
	return f
}

// A queue is maintained when no Receive has waited for a while: again at once while there is more to
// do, at the next event, and at the interval.
func TestMaintain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := maintain(t, new(store), func(n int, c *Claim) error {
			switch n {
			case 0, 1:
				c.Next = c.Now
			case 2:
				c.Next = c.Now.Add(5 * time.Second)
			}
			return nil
		})
		after(2 * time.Minute)
		equal(t, "maintained", f.store.maintained(), []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 25 * time.Second, 95 * time.Second})
	})
}

// serves is a store with a message for each Receive.
func serves() *store {
	return &store{reply: func(_ int, c *Claim) error {
		c.Deliveries = deliveries(0, 1)
		return nil
	}}
}

// A Receive ends the sleep of a maintained queue, and a wake-up during the sleep shortens it.
func TestMaintainedQueueWakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := maintain(t, serves(), func(_ int, c *Claim) error { return nil })
		after(5 * time.Second)
		f.hub.WakeAll() // maintaining comes after it
		after(6 * time.Second)
		equal(t, "maintained", f.store.maintained(), []time.Duration{10 * time.Second})
		after(10 * time.Second)
		f.hub.Wake("orders", time.Now().Add(ahead+time.Second))
		after(12 * time.Second)
		equal(t, "maintained", f.store.maintained(), []time.Duration{10 * time.Second, 32 * time.Second})
		<-f.receive(t.Context(), 1)
		equal(t, "claims", f.store.claims(), []time.Duration{33 * time.Second})
		after(5 * time.Second)
		<-f.receive(t.Context(), 1) // before the queue is idle for long
		equal(t, "claims", f.store.claims(), []time.Duration{33 * time.Second, 38 * time.Second})
		after(10 * time.Second)
		equal(t, "maintained", f.store.maintained()[2:], []time.Duration{48 * time.Second})
	})
}

// Failures are logged, and tried again at the interval. One that Close causes is not.
func TestMaintainFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := maintain(t, new(store), func(n int, c *Claim) error {
			*c = Claim{}
			time.Sleep(time.Duration(n) * time.Second) // of the bubble: the work takes as long
			return errors.New("broken")
		})
		after(91 * time.Second)
		equal(t, "maintained", f.store.maintained(), []time.Duration{10 * time.Second, 80 * time.Second})
		after(60*time.Second + 500*time.Millisecond)
		if err := f.Close(); err != nil || len(f.store.maintained()) != 3 {
			t.Errorf("%v; maintained at %v", err, f.store.maintained())
		}
		if n := strings.Count(f.log.String(), "maintaining the queue failed"); n != 2 {
			t.Errorf("the log has %q", f.log)
		}
	})
}

// On a fake clock a failure is tried again at its interval too, though there is no time of the store.
func TestMaintainFailsOnAFakeClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := clockwork.NewFakeClock()
		f := maintain(t, new(store), func(_ int, c *Claim) error {
			*c = Claim{}
			return errors.New("broken")
		}, on(clock))
		for _, tt := range []struct {
			by   time.Duration
			want int
		}{{10 * time.Second, 1}, {poll - time.Nanosecond, 1}, {time.Nanosecond, 1}, {10 * time.Second, 2}} {
			after(0)
			clock.Advance(tt.by)
			after(0)
			if len(f.store.maintained()) != tt.want {
				t.Errorf("after %v more: maintained %d times, want %d", tt.by, len(f.store.maintained()), tt.want)
			}
		}
	})
}

// Work that never ends leaves room for a Receive, and for Close.
func TestMaintainWithoutAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := maintain(t, serves(), func(_ int, c *Claim) error {
			time.Sleep(time.Second) // of the bubble: the work takes as long
			c.Next = c.Now
			return nil
		})
		after(12*time.Second + time.Millisecond)
		<-f.receive(t.Context(), 1)
		equal(t, "claims", f.store.claims(), []time.Duration{13 * time.Second})
		after(11 * time.Second)
		n := len(f.store.maintained())
		if err := f.Close(); err != nil || len(f.store.maintained()) != n {
			t.Errorf("%v; maintained %d times after %d", err, len(f.store.maintained()), n)
		}
	})
}
