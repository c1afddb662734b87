package conformance

import (
	"context"
	"time"
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
// real time that moment cannot be met: it only looks at once. What comes later is held against
// its due time anyway.
func (t *trial) hush(d time.Duration, because string) {
	if t.fake != nil {
		t.pass(d - 1)
	}
	t.nothing(because)
}

// quietFor hushes, and lets the rest of d pass.
func (t *trial) quietFor(d time.Duration, because string) {
	over := t.now().Add(d)
	t.hush(d, because)
	t.pass(over.Sub(t.now()))
}

// grace lets the lateness that the traits declare pass in virtual time. In real time whoever
// waits for a message waits for that too.
func (t *trial) grace() {
	if t.fake != nil {
		t.pass(t.late())
	}
}

// moment gives whoever runs in the background, and should not, the time to do harm. A check that
// needs it says less without, and never more.
func (t *trial) moment() { time.Sleep(t.Quiet) }

// late is what a hand-out may come late by, at the rounding of due times and the sweep's grain.
func (t *trial) late() time.Duration {
	if t.fake != nil {
		return t.traits.Resolution + t.traits.Sweep
	}
	return t.traits.Resolution + t.traits.Sweep + t.Slack
}

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
