package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// storeClock is the clock of a target's store. It jumps, and notes when.
type storeClock struct {
	set   func(time.Duration)
	shift time.Duration // its difference from the machine's clock between jumps
	last  time.Duration // of the last jump: then every message is due and every lease has ended
	jumps []judge.ClockJump
}

func newStoreClock(shift, last time.Duration, set func(time.Duration)) *storeClock {
	return &storeClock{set: set, shift: shift, last: last, jumps: []judge.ClockJump{{Shift: int64(shift)}}}
}

// newServerClock is a server's clock. Its last jump goes beyond all others.
func newServerClock(t *testing.T, clock *testenv.Clock) *storeClock {
	t.Helper()
	return newStoreClock(0, 3*time.Hour, func(to time.Duration) { clock.Set(t, to) })
}

// jumpTo is for the test's goroutine.
func (c *storeClock) jumpTo(to time.Duration) { c.jumps = append(c.jumps, judge.JumpTo(to, c.set)) }

// reset sets the clock right for another run.
func (c *storeClock) reset() {
	c.set(c.shift)
	c.jumps = []judge.ClockJump{{Shift: int64(c.shift)}}
}

// jumpLast is the last fault of a run.
func (c *storeClock) jumpLast(*testing.T) judge.Window {
	c.jumpTo(c.last)
	at := c.jumps[len(c.jumps)-1]
	return judge.Window{Kind: clockJumps, Start: at.Start, End: at.End, Effect: 1}
}

const (
	clockJumps   = "clock jumps"
	jumpsByHours = clockJumps + ", up to 1h0m0s"
)

// jumpFaults make a clock jump by about a lease, by much more than a lease, and by hours.
func jumpFaults(c *storeClock, length time.Duration) []*fault {
	return each([]time.Duration{10 * time.Second, 10 * time.Minute, time.Hour}, func(most time.Duration) *fault {
		return lasting(fmt.Sprintf("%s, up to %v", clockJumps, most), 1, length, judge.Window{}, func(i *injection) func() int {
			jumps := 0
			for ; jumps == 0 || i.rng.IntN(3) == 0; jumps++ {
				c.jumpTo(c.shift + time.Duration(i.rng.Int64N(int64(2*most))) - most)
			}
			return func() int { c.jumpTo(c.shift); return jumps + 1 }
		})
	})
}

// clocksWrong lasts all the time. The fault only checks that the clocks differ as they should.
func clocksWrong(s *testenv.RedisServer, clock *testenv.Clock) *fault {
	return instant("clocks wrong", 1, judge.Window{}, func(i *injection) int {
		client := s.Client(i.T, retrying)
		defer func() { _ = client.Close() }()
		at, err := client.Time(i.Context()).Result()
		must(i.T, err)
		return count(clock.Skew() != 0 && (time.Until(at)-clock.Skew()).Abs() < time.Second)
	})
}
