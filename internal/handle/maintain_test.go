package handle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// maintained opens a handle that is maintained when idle for ten seconds, and returns the times.
func maintained(t *testing.T, s *store, do func(n int, c *Claim) error) (fixture, *[]time.Duration) {
	t.Helper()
	times := new([]time.Duration)
	f := open(t, s, func(source *Source) {
		source.IdleFor = 10 * time.Second
		source.Maintain = func(context.Context) (Claim, error) {
			c := Claim{Now: time.Now().Add(ahead)}
			*times = append(*times, time.Since(s.began))
			err := do(len(*times)-1, &c)
			return c, err
		}
	})
	f.Start()
	return f, times
}

// A queue is maintained when no Receive has waited for a while: again at once while there is more to
// do, at the next event, and at the interval.
func TestMaintain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, times := maintained(t, new(store), func(n int, c *Claim) error {
			switch n {
			case 0, 1:
				c.Next = c.Now
			case 2:
				c.Next = c.Now.Add(5 * time.Second)
			}
			return nil
		})
		after(2 * time.Minute)
		equal(t, "maintained", *times, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 25 * time.Second, 95 * time.Second})
	})
}

// A Receive ends the sleep of a maintained queue, and a wake-up shortens it.
func TestMaintainedQueueWakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, times := maintained(t, &store{reply: func(_ int, c *Claim) error {
			c.Deliveries = deliveries(0, 1)
			return nil
		}}, func(_ int, c *Claim) error { return nil })
		after(11 * time.Second)
		f.hub.Wake("orders", time.Now().Add(ahead+time.Second))
		after(12 * time.Second)
		equal(t, "maintained", *times, []time.Duration{10 * time.Second, 22 * time.Second})
		<-f.receive(t.Context(), 1)
		equal(t, "claims", f.store.claims(), []time.Duration{23 * time.Second})
		after(10 * time.Second)
		equal(t, "maintained", (*times)[2:], []time.Duration{33 * time.Second})
	})
}

// Failures are logged, and tried again at the interval, whatever the clock shows.
func TestMaintainFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, times := maintained(t, new(store), func(_ int, c *Claim) error {
			*c = Claim{}
			return errors.New("broken")
		})
		after(90 * time.Second)
		equal(t, "maintained", *times, []time.Duration{10 * time.Second, 80 * time.Second})
		if n := strings.Count(f.log.String(), "maintaining the queue failed"); n != 2 {
			t.Errorf("the log has %q", f.log)
		}
	})
}

// Work that never ends leaves room for a Receive, and for Close.
func TestMaintainWithoutAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, times := maintained(t, &store{reply: func(_ int, c *Claim) error {
			c.Deliveries = deliveries(0, 1)
			return nil
		}}, func(_ int, c *Claim) error {
			time.Sleep(time.Second)
			c.Next = c.Now
			return nil
		})
		after(12*time.Second + time.Millisecond)
		<-f.receive(t.Context(), 1)
		equal(t, "claims", f.store.claims(), []time.Duration{13 * time.Second})
		after(11 * time.Second)
		n := len(*times)
		if err := f.Close(); err != nil || len(*times) != n {
			t.Errorf("%v; maintained %d times after %d", err, len(*times), n)
		}
	})
}
