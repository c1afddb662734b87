package guard

import (
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
)

// A guardedClock is a user's clock. While it panics, Now returns the last time that it showed, and
// timers run by the process's clock.
type guardedClock struct {
	clockwork.Clock
	own  clockwork.Clock
	last *atomic.Pointer[time.Time]
}

// Clock returns a clock that never panics.
func Clock(c clockwork.Clock) clockwork.Clock {
	g := guardedClock{Clock: c, own: clockwork.NewRealClock(), last: new(atomic.Pointer[time.Time])}
	now := time.Now()
	g.last.Store(&now)
	return g
}

// Unwrap returns the user's clock. A backend compares the clocks of its handles by it.
func (c guardedClock) Unwrap() clockwork.Clock { return c.Clock }

func (c guardedClock) Now() (now time.Time) {
	defer func() {
		if recover() != nil {
			now = *c.last.Load()
		}
	}()
	now = c.Clock.Now()
	c.last.Store(&now)
	return now
}

func (c guardedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c guardedClock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

func (c guardedClock) Sleep(d time.Duration) {
	defer func() {
		if recover() != nil {
			c.own.Sleep(d)
		}
	}()
	c.Clock.Sleep(d)
}

func (c guardedClock) After(d time.Duration) <-chan time.Time {
	return instead(func(c clockwork.Clock) <-chan time.Time { return c.After(d) }, c)
}

func (c guardedClock) NewTimer(d time.Duration) clockwork.Timer {
	return instead(func(c clockwork.Clock) clockwork.Timer { return c.NewTimer(d) }, c)
}

func (c guardedClock) NewTicker(d time.Duration) clockwork.Ticker {
	return instead(func(c clockwork.Clock) clockwork.Ticker { return c.NewTicker(d) }, c)
}

func (c guardedClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return instead(func(c clockwork.Clock) clockwork.Timer { return c.AfterFunc(d, f) }, c)
}

// instead asks the user's clock, and the process's clock if that panics.
func instead[T any](ask func(clockwork.Clock) T, c guardedClock) (got T) {
	defer func() {
		if recover() != nil {
			got = ask(c.own)
		}
	}()
	return ask(c.Clock)
}
