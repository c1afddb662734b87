package chaos_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// skewedVenue is a server whose clock is off: to the server it is all workers' clocks that are wrong.
func skewedVenue(backendName string, skew time.Duration) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		v, s, clock := onClock(t, backendName, skew)
		v.name = fmt.Sprintf("%s, clocks %+.0fh", backendName, -skew.Hours())
		v.faults = append(v.faults, clocksWrong(s, clock))
		v.clock = newJumper(skew, skew, nil)
		return v
	}
}

// jumpyVenue is a server whose clock jumps. That is also the test for workers whose clocks jump: between a worker and the server nothing but the
// difference of their wall clocks counts, and what a worker measures by itself, such as how long a call took, it measures by its
// monotonic clock, which no jump reaches. The worker's own cannot be moved: Go does not ask the C library for the time.
func jumpyVenue(backendName string) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		v, _, clock := onClock(t, backendName, 0)
		v.name = backendName + ", clock jumps"
		v.clock = newServerJumper(t, clock)
		v.settle = v.clock.settle
		v.faults = slices.DeleteFunc(v.faults, func(f *fault) bool { return !slices.Contains(besideJumps, f.Name) })
		v.faults = append(v.faults, v.clock.jumps(time.Second)...)
		return v
	}
}

// besideJumps are the faults among which the clock jumps: those after which the server tells the time anew, and that have scripts repeated.
var besideJumps = []string{"replies cut", "server kill -9"}

// onClock is a venue on a server of its own on a clock of its own.
func onClock(t *testing.T, backendName string, skew time.Duration) (*venue, *testenv.RedisServer, *testenv.Clock) {
	t.Helper()
	clock := testenv.NewClock(t, skew)
	s := testenv.Redis(t, slices.Concat(durably(), []testenv.Option{testenv.OnClock(clock)})...)
	v := redisOn(t, s, backendName, 3000)
	v.brief = true
	return v, s, clock
}
