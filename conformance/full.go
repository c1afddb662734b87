package conformance

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 15: a store at its limit.
var fullChecks = []Check{
	{
		Name: "full", Invariant: 15, limited: true,
		Rule: "A queue at its limit returns ErrFull for each further message and keeps nothing of it, neither id nor window; messages in flight and dead ones count; a message that ends makes room. A replacement that needs no more room is stored; one that returns ErrFull, and a nack with headers that does, leave the message, its lease and its attempts.",
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
	t.changesWhenFull(n)
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

// changesWhenFull gives a message of a full queue back with larger headers, and replaces it by one
// of its size and by a larger one. A queue that is limited in messages accepts all three.
func (t *testRun) changesWhenFull(n int) {
	ds := t.takeAll(n, n)
	for i, d := range ds {
		if i == 0 && t.has(backend.ChangingHeaders) {
			t.growsOnNack(d)
		} else {
			t.nack(d, 0)
		}
	}
	if !t.has(backend.Replacing) {
		return
	}
	m := t.after(0)
	m.ID, m.Replace, m.Body = ds[0].ID, true, bytes.Repeat([]byte("b"), len(m.Body))
	t.mustReplace(m, "by one of its size")
	for _, d := range t.takeAll(n, n) {
		t.nack(d, 0)
	}
	large := t.after(1000 * time.Hour)
	large.ID, large.Replace, large.Body = m.ID, true, make([]byte, 1<<16)
	attempts := 2
	if err := outcome(t.q.Schedule(t.ctx, []backend.Message{large})); !errors.Is(err, backend.ErrFull) {
		t.must(err, "replacing a message of a full queue by a larger one")
		t.mustReplace(m, "by one of its size again")
		attempts = 1
	}
	for _, d := range t.takeAll(n, n) {
		if d.ID == m.ID {
			t.attemptIs(d, attempts)
		}
		t.nack(d, 0)
	}
}

// mustReplace replaces a message of a full queue.
func (t *testRun) mustReplace(m backend.Message, how string) {
	t.expect(m)
	t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "replacing a message of a full queue %s", how)
}

// growsOnNack gives a message back with large headers. Where there is no room for them its lease is
// still in force, and it is given back without them.
func (t *testRun) growsOnNack(d backend.Delivery) {
	large := map[string]string{"large": strings.Repeat("h", 1<<15)}
	err := t.tryNackWith(d, large)
	if errors.Is(err, backend.ErrFull) {
		_, err = t.extend(d, t.lease())
		t.must(err, "extending the lease of a message that could not be given back")
		t.nack(d, 0)
		return
	}
	t.must(err, "giving a message of a full queue back with larger headers")
	t.expectHeaders(d.ID, large)
	t.expectAgain(d.ID, time.Time{})
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
