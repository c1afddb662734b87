package conformance

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// now reads the run's clock.
func (t *testRun) now() time.Time {
	if t.fake != nil {
		return t.fake.Now()
	}
	return time.Now()
}

// pass lets time pass: at once on the fake clock, else by waiting.
func (t *testRun) pass(d time.Duration) {
	if t.fake != nil && t.log != nil {
		t.jumps = append(t.jumps, judge.Freeze(func() time.Time { t.fake.Advance(d); return t.fake.Now() }))
		return
	}
	if t.fake != nil {
		t.fake.Advance(d)
		return
	}
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}

// hush fails when a message is handed out just before d is over. In real time it waits for one all
// the time, since that moment cannot be met; a message at the very end is compared with its due
// time.
func (t *testRun) hush(d time.Duration, because string) {
	if t.fake == nil {
		t.nothingFor(max(d, t.Quiet), t.q, because)
		return
	}
	if d > 0 {
		t.pass(d - 1)
	}
	t.nothing(because)
}

// quietFor fails when a message is handed out within d, which it lets pass.
func (t *testRun) quietFor(d time.Duration, because string) { t.quietUntil(t.now().Add(d), because) }

func (t *testRun) quietUntil(end time.Time, because string) {
	t.hush(end.Sub(t.now()), because)
	t.pass(max(0, end.Sub(t.now())))
}

// grace lets the lag that the traits declare pass in virtual time. In real time a Receive waits for
// it anyway.
func (t *testRun) grace() {
	if t.fake != nil {
		t.pass(t.lag())
	}
}

// outlast lets time pass until a lease of that length has ended and the store has noticed it.
func (t *testRun) outlast(lease time.Duration) {
	t.pass(lease + t.lag())
	if t.has(backend.CountingScheduled) && t.traits.Sweep > 0 && t.traits.Leases == backend.InStore {
		t.eventually(0, "the sweep of ended leases", func() bool {
			s, err := t.q.Stats(t.ctx)
			t.must(err, "Stats")
			return s.InFlight == 0
		})
	}
}

// moment gives background goroutines time to run. Without it a check can miss a fault, and cannot
// report a false one.
func (t *testRun) moment() { time.Sleep(t.Quiet) }

// lag is the lateness of deliveries that the traits declare.
func (t *testRun) lag() time.Duration { return t.traits.Resolution + t.traits.Sweep }

// noise is the lateness that the machine may add to deliveries, and to the suite.
func (t *testRun) noise() time.Duration {
	if t.fake != nil {
		return 0
	}
	return t.Slack
}

// late is the lateness that is allowed for a delivery.
func (t *testRun) late() time.Duration { return t.lag() + t.noise() }

// settleDown waits until a goroutine sleeps on the fake clock, so that the next event has to wake
// it. If none does, the check finds less.
func (t *testRun) settleDown() {
	if t.fake == nil {
		t.pass(t.Quiet)
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, 4*t.Quiet)
	defer cancel()
	_ = t.fake.BlockUntilContext(ctx, 1)
	t.moment() // it may be another goroutine than the one that is to be woken
}

// eventually polls until ok, and lets time pass in steps where step is not 0.
func (t *testRun) eventually(step time.Duration, what string, ok func() bool) {
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
