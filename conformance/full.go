package conformance

import (
	"errors"

	"github.com/delayq/delayq/backend"
)

// Invariant 15: a store at its limit.
var fullChecks = []Check{
	{
		Name: "full", Invariant: 15, limited: true,
		Rule: "A queue at its limit returns ErrFull for each further message and keeps nothing of it, neither id nor window; messages in flight and dead ones count; a message that ends makes room.",
		run:  full,
	},
}

// fullAfter bounds the messages that the check pushes until the queue is full.
const fullAfter = 20_000

func full(t *testRun) {
	b, cleanup, err := t.Limited(t.ctx)
	t.must(err, "making a backend with a limit")
	t.cleanUp(b, cleanup)
	t.q, err = t.openOn(b, t.name())
	t.must(err, "opening a queue")
	n := t.fill()
	t.staysFull("all wait")
	ds := t.takeAll(n, n)
	t.staysFull("all are in flight")
	for i := range ds[1:] {
		t.nack(ds[1+i], 0)
	}
	if t.has(backend.Redriving) {
		t.must(t.deadLetter(ds[0], "of the check"), "Dead")
		t.staysFull("one is dead")
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{ds[0].ID})), "DeleteDead")
	} else {
		t.ack(ds[0])
	}
	t.hasRoomForOne("one was deleted")
	t.grace()
	t.ack(t.take())
	t.hasRoomForOne("one was acknowledged")
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(t.pushedLast()), "Cancel")
		t.hasRoomForOne("one was cancelled")
	}
	t.ackBatch(t.takeAll(n, n))
	t.windowsEnd(n)
}

// fill pushes messages of one size until the queue is full, and returns their number.
func (t *testRun) fill() int {
	for n := range fullAfter {
		m := t.after(0)
		err := outcome(t.q.Schedule(t.ctx, []backend.Message{m}))
		if errors.Is(err, backend.ErrFull) {
			if want := t.LimitedTo; want > 0 && n != want {
				t.fail("a queue that is limited to %d messages is full at %d", want, n)
			}
			return n
		}
		t.must(err, "filling a queue")
		t.expect(m)
	}
	t.fail("a queue with a limit accepted %d messages", fullAfter)
	return 0
}

// staysFull pushes a batch that must be rejected. A delivery of it fails, since it is not expected.
func (t *testRun) staysFull(when string) {
	ms := []backend.Message{t.after(0), t.after(0)}
	if t.has(backend.UniqueWindows) {
		ms[0].UniqueFor = t.lease()
	}
	for range 2 { // a window or an id that stayed would show the second time
		t.outcomes(t.q.Schedule(t.ctx, ms), len(ms), "pushing to a full queue, "+when+",", func(int) error { return backend.ErrFull })
	}
}

// hasRoomForOne pushes two messages in one batch, of which the first must be accepted.
func (t *testRun) hasRoomForOne(when string) {
	ms := []backend.Message{t.after(0), t.after(0)}
	t.expect(ms[0])
	t.outcomes(t.q.Schedule(t.ctx, ms), len(ms), "pushing "+when+",", func(i int) error {
		if i == 0 {
			return nil
		}
		return backend.ErrFull
	})
}

// pushedLast is a message that waits.
func (t *testRun) pushedLast() string {
	d := t.take()
	t.untouched(d)
	return d.ID
}

// windowsEnd has a window end before each further push, with which the queue is never full.
func (t *testRun) windowsEnd(n int) {
	if !t.has(backend.UniqueWindows) || t.fake == nil {
		return
	}
	for range 3 * n {
		m := t.afterUnique(0, t.Tick)
		t.push(m)
		t.ack(t.takeID(m.ID))
		t.pass(t.Tick + t.traits.Resolution)
	}
	for range 2 {
		for range n / 2 {
			m := t.afterUnique(0, t.Tick)
			err := outcome(t.q.Schedule(t.ctx, []backend.Message{m}))
			if errors.Is(err, backend.ErrFull) {
				break
			}
			t.must(err, "pushing")
			t.expect(m)
			t.ack(t.takeID(m.ID))
		}
		t.pass(t.Tick + t.traits.Resolution) // all windows end at once
	}
	m := t.after(0)
	t.push(m)
	t.ack(t.takeID(m.ID))
}
