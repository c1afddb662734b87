package backend_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// slept runs SleepUntil inside a bubble and returns a channel that is closed at its end.
func slept(clock clockwork.Clock, until time.Time, wake ...<-chan struct{}) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		backend.SleepUntil(clock, until, wake...)
	}()
	return done
}

func ended(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestSleepUntilEndsAtTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		backend.SleepUntil(clockwork.NewRealClock(), began.Add(time.Hour), nil, make(chan struct{}))
		if after := time.Since(began); after != time.Hour {
			t.Errorf("slept %v, want an hour", after)
		}
		backend.SleepUntil(clockwork.NewRealClock(), began)
		if after := time.Since(began); after != time.Hour {
			t.Errorf("slept until %v after the start, for a time that has passed", after)
		}
	})
}

func TestSleepUntilEndsWithAChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for i := range 2 {
			wakes := []chan struct{}{make(chan struct{}), make(chan struct{})}
			done := slept(clockwork.NewRealClock(), time.Now().Add(time.Hour), wakes[0], wakes[1])
			if ended(done) {
				t.Fatal("the sleep ended with nothing to end it")
			}
			close(wakes[i])
			if !ended(done) {
				t.Errorf("channel %d does not end the sleep", i)
				<-done
			}
		}
	})
}

// jumpy is a fake clock that jumps each time a timer is asked for, before the timer starts.
type jumpy struct {
	*clockwork.FakeClock
	jumps []time.Duration
}

func (c *jumpy) NewTimer(d time.Duration) clockwork.Timer {
	if len(c.jumps) > 0 {
		c.Advance(c.jumps[0])
		c.jumps = c.jumps[1:]
	}
	return c.FakeClock.NewTimer(d)
}

func TestSleepUntilNoticesAJumpBeforeItsTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := &jumpy{clockwork.NewFakeClock(), []time.Duration{20 * time.Minute, 30 * time.Minute}}
		done := slept(clock, clock.Now().Add(time.Hour))
		if ended(done) {
			t.Fatal("the sleep ended 10 minutes early")
		}
		clock.Advance(10 * time.Minute)
		if !ended(done) {
			t.Fatal("the sleep outlasts its time by the clock's jumps")
		}

		clock.jumps = []time.Duration{2 * time.Hour}
		if !ended(slept(clock, clock.Now().Add(time.Hour))) {
			t.Error("the sleep goes on after a jump over its end")
		}
	})
}
