package conformance

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// now reads the trial's clock.
func (t *trial) now() time.Time {
	if t.fake != nil {
		return t.fake.Now()
	}
	return time.Now()
}

// pass lets time go by: at once on the fake clock, else by waiting.
func (t *trial) pass(d time.Duration) {
	if t.fake != nil {
		t.fake.Advance(d)
		return
	}
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}

// hush lets time pass until just before d is over, and looks for a message that must not come. In
// real time that moment cannot be met: it looks all the time. What comes at the very end is held against its due time.
func (t *trial) hush(d time.Duration, because string) {
	if t.fake == nil {
		t.nothingFor(max(d, t.Quiet), t.q, because)
		return
	}
	if d > 0 {
		t.pass(d - 1)
	}
	t.nothing(because)
}

// quietFor hushes, and lets the rest of d pass.
func (t *trial) quietFor(d time.Duration, because string) { t.quietUntil(t.now().Add(d), because) }

func (t *trial) quietUntil(end time.Time, because string) {
	t.hush(end.Sub(t.now()), because)
	t.pass(max(0, end.Sub(t.now())))
}

// grace lets the lag that the traits declare pass in virtual time. In real time whoever
// waits for a message waits for that too.
func (t *trial) grace() {
	if t.fake != nil {
		t.pass(t.lag())
	}
}

// outlast lets time pass until a lease of that length has ended and the store has noticed.
func (t *trial) outlast(lease time.Duration) {
	t.pass(lease + t.lag())
	if t.has(backend.Counting) && t.traits.Sweep > 0 && t.traits.Leases == backend.InStore {
		t.eventually(0, "the sweep of ended leases", func() bool {
			s, err := t.q.Stats(t.ctx)
			t.must(err, "Stats")
			return s.InFlight == 0
		})
	}
}

// moment gives whoever runs in the background, and should not, the time to do harm. A check that
// needs it says less without, and never more.
func (t *trial) moment() { time.Sleep(t.Quiet) }

// lag is what the traits declare that a hand-out may come late by.
func (t *trial) lag() time.Duration { return t.traits.Resolution + t.traits.Sweep }

// noise is what the machine may add to that, and what it may hold up the suite by.
func (t *trial) noise() time.Duration {
	if t.fake != nil {
		return 0
	}
	return t.Slack
}

// late is the lateness that a hand-out is judged by.
func (t *trial) late() time.Duration { return t.lag() + t.noise() }

// settleDown waits, on the fake clock, until somebody sleeps on it, so that what comes next really
// has to wake them. Nobody may: then the wait is in vain and the check says less.
func (t *trial) settleDown() {
	if t.fake == nil {
		t.pass(t.Quiet)
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, 4*t.Quiet)
	defer cancel()
	_ = t.fake.BlockUntilContext(ctx, 1)
	t.moment() // that one may be another than who was meant
}

// eventually polls until ok, letting time go by in small steps where step is not 0.
func (t *trial) eventually(step time.Duration, what string, ok func() bool) {
	deadline := time.Now().Add(t.Patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.fail("%s did not happen within %v", what, t.Patience)
		}
		if step > 0 {
			t.pass(step)
		}
		time.Sleep(time.Millisecond) // polling: the deadline above decides
	}
}
