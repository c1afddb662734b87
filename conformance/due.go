package conformance

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 1: never early.
var dueChecks = []Check{
	{
		Name: "never-early", Invariant: 1,
		Rule: "A message is handed out at or after its due time by the store's clock, with no tolerance.",
		run:  neverEarly,
	},
	{
		Name: "never-early-under-load", Invariant: 1,
		Rule: "No message of many with scattered delays is handed out before its due time.",
		run:  neverEarlyUnderLoad,
	},
	{
		Name: "due-at", Invariant: 1,
		Rule: "A message with a due time in the future waits for it; one with a due time in the past is due at once.",
		run:  dueAt,
	},
	{
		Name: "rounds-up", Invariant: 1,
		Rule: "A due time finer than the store's resolution is rounded up, never down, by less than the resolution.",
		run:  roundsUp,
	},
	{
		Name: "nack-delay", Invariant: 1,
		Rule: "A message given back with a delay is handed out when the delay is over, and not before.",
		run:  nackDelay,
	},
	{
		Name: "reschedule", Invariant: 1, needs: []backend.Feature{backend.Rescheduling},
		Rule: "A rescheduled message is handed out at its new due time, sooner or later than the old one, whole.",
		run:  reschedule,
	},
	{
		Name: "reschedule-delay", Invariant: 1, needs: []backend.Feature{backend.Rescheduling},
		Rule: "A delay of Reschedule counts from the store's now, however long the message has waited and whenever it was due.",
		run:  rescheduleDelay,
	},
	{
		Name: "reschedule-states", Invariant: 6, needs: []backend.Feature{backend.Rescheduling},
		Rule: "Reschedule returns ErrInFlight for a message in flight and ErrNotFound for one that is done or unknown, and changes nothing.",
		run:  rescheduleStates,
	},
	{
		Name: "longest-delay", Invariant: 1,
		Rule: "The longest delay that the backend declares is stored and does not come early.",
		run:  longestDelay,
	},
}

func neverEarly(t *testRun) {
	m := t.after(t.Tick)
	t.push(m)
	t.quietFor(t.Tick, "it is not due yet")
	t.grace()
	d := t.takeID(m.ID)
	if got := d.Due; t.fake != nil && got.Before(t.now().Add(-t.lag())) {
		t.fail("message %s has the due time %v, before the one that it was pushed with", m.ID, got)
	}
	t.ack(d)
}

func neverEarlyUnderLoad(t *testRun) {
	const n = 200
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.after(time.Duration(i*7919%n) * 3 * t.Tick / n)
	}
	t.push(ms...)
	t.drainAsDue(n, 3*t.Tick)
}

// drainAsDue receives and acknowledges n messages while they become due.
func (t *testRun) drainAsDue(n int, within time.Duration) {
	steps := 0
	for left := n; left > 0; {
		if t.fake != nil && t.readyNow() == 0 {
			if steps++; steps > 2*n+100 {
				t.fail("%d of %d messages never became due", left, n)
			}
			t.pass(within / time.Duration(n))
			continue
		}
		ds, err := t.receive(t.q, 10, t.lease())
		t.must(err, "taking message %d of %d", n-left+1, n)
		t.ack(ds...)
		left -= len(ds)
	}
}

// readyNow returns the number of ready messages; 0 or 1 where the store cannot count them.
func (t *testRun) readyNow() int64 {
	if t.has(backend.CountingScheduled) {
		s, err := t.q.Stats(t.ctx)
		t.must(err, "Stats")
		return s.Ready
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.Quiet)
	defer cancel()
	ds, err := t.q.Receive(ctx, 1, t.lease())
	if err != nil {
		return 0
	}
	t.must(t.taken(ds[0]), "looking for messages")
	t.untouched(ds[0])
	return 1
}

func dueAt(t *testRun) {
	past := t.at(t.now().Add(-time.Hour))
	t.push(past)
	t.ack(t.takeID(past.ID))
	future := t.at(t.now().Add(t.Tick))
	t.push(future)
	t.quietUntil(future.Due, "it is not due yet")
	t.grace()
	t.ack(t.takeID(future.ID))
}

func roundsUp(t *testRun) {
	grain := max(t.traits.Resolution, time.Millisecond)
	for _, part := range []time.Duration{1, grain / 2, grain - 1} {
		due := t.now().Truncate(grain).Add(t.Tick + part)
		m := t.at(due)
		t.push(m)
		t.quietUntil(due, "it is not due yet")
		t.grace()
		d := t.takeID(m.ID)
		if d.Due.Before(due) || d.Due.Sub(due) >= max(t.traits.Resolution, 1) {
			t.fail("due time %v was rounded to %v; the resolution is %v", due, d.Due, t.traits.Resolution)
		}
		t.ack(d)
	}
}

func nackDelay(t *testRun) {
	id := t.pushAfter(0)
	t.nack(t.takeID(id), t.Tick)
	t.quietFor(t.Tick, "it was given back with a delay")
	t.grace()
	t.ack(t.takeID(id))
}

func reschedule(t *testRun) {
	sooner, later := t.pushAfter(100*t.Tick), t.pushAfter(2*t.Tick)
	t.expectAgain(sooner, t.now().Add(t.Tick))
	t.must(t.move(sooner, t.Tick), "rescheduling to sooner")
	end := t.now().Add(4 * t.Tick)
	t.expectAgain(later, end)
	t.must(t.move(later, 4*t.Tick), "rescheduling to later")
	t.pass(t.Tick)
	t.grace()
	t.ack(t.takeID(sooner))
	t.quietUntil(end, "it was rescheduled to later")
	t.grace()
	t.ack(t.takeID(later))
}

func rescheduleDelay(t *testRun) {
	id := t.pushAfter(100 * t.Tick)
	t.pass(2 * t.Tick)
	end := t.now().Add(3 * t.Tick)
	t.expectAgain(id, end)
	t.must(t.move(id, 3*t.Tick), "rescheduling")
	t.quietUntil(end, "its new delay is not over")
	t.grace()
	t.ack(t.takeID(id))
}

func rescheduleStates(t *testRun) {
	id := t.pushAfter(0)
	d := t.takeID(id)
	t.want(t.move(id, 0), backend.ErrInFlight, "rescheduling a message in flight")
	t.nothing("it is in flight")
	t.ack(d)
	t.want(t.move(id, 0), backend.ErrNotFound, "rescheduling a message that is done")
	t.want(t.move("unknown", 0), backend.ErrNotFound, "rescheduling an unknown id")
	t.nothing("nothing is there")
}

func longestDelay(t *testRun) {
	longest := t.traits.MaxDelay
	if longest == 0 {
		longest = backend.MaxDelay
	}
	id := t.pushAfter(longest)
	t.pass(t.Tick)
	t.nothing("its delay is the longest there is")
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(id), "cancelling it")
	}
}
