package backend

import (
	"reflect"
	"time"

	"github.com/jonboulle/clockwork"
)

// SleepUntil waits until the clock shows that time, or until it can receive from one of the
// channels, which may be nil. A Receive sleeps with it until the next due time or end of a lease.
//
// A fake clock may jump while a timer is started, and the timer would be late by the jump.
// SleepUntil reads the clock again and starts another. The timer of a real clock does not notice
// that the wall clock is set: bound the sleep where that matters.
func SleepUntil(clock clockwork.Clock, until time.Time, wake ...<-chan struct{}) {
	cases := make([]reflect.SelectCase, 1+len(wake))
	for i, c := range wake {
		cases[1+i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	for tries := 3; tries > 0; tries-- { // a clock that keeps jumping ends the loop
		now := clock.Now()
		t := clock.NewTimer(until.Sub(now))
		if clock.Since(now) < time.Millisecond || tries == 1 {
			cases[0] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(t.Chan())}
			reflect.Select(cases)
			tries = 0
		}
		t.Stop()
	}
}
