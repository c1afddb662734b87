package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 4, for ids that stay taken.
var uniqueChecks = []Check{
	{
		Name: "unique-window", Invariant: 4, needs: []backend.Feature{backend.UniqueWindows},
		Rule: "While the window of an id lasts, every push of the id returns ErrDuplicate, with UniqueFor or without, on any client, and the first message stays; a rejected push opens no window.",
		run:  uniqueWindow,
	},
	{
		Name: "unique-done", Invariant: 4, needs: []backend.Feature{backend.UniqueWindows},
		Rule: "A window outlasts its message: the id stays taken when the message is done, dead, deleted or cancelled.",
		run:  uniqueDone,
	},
	{
		Name: "unique-ended", Invariant: 4, needs: []backend.Feature{backend.UniqueWindows},
		Rule: "A window lasts for UniqueFor from the push on, rounded up to the resolution, and no rejected push extends it; then the id is free.",
		run:  uniqueEnded,
	},
	{
		Name: "unique-race", Invariant: 4, needs: []backend.Feature{backend.UniqueWindows},
		Rule: "Of concurrent pushes of one id, on one client or on several, exactly one is accepted, however soon its message is done.",
		run:  uniqueRace,
	},
}

// afterUnique makes a message whose id stays taken.
func (t *testRun) afterUnique(delay, window time.Duration) backend.Message {
	m := t.after(delay)
	m.UniqueFor = window
	return m
}

// window is a UniqueFor that outlasts a check, 0 where the store has none.
func (t *testRun) window() time.Duration {
	if !t.has(backend.UniqueWindows) {
		return 0
	}
	return t.lease()
}

// isTaken pushes the id again, with a window and without.
func (t *testRun) isTaken(q backend.Queue, id, when string) {
	for _, window := range []time.Duration{0, t.lease()} {
		second := backend.Message{ID: id, Body: []byte("second"), UniqueFor: window}
		t.want(outcome(q.Schedule(t.ctx, []backend.Message{second})), backend.ErrDuplicate,
			"pushing, with UniqueFor %v, an id that is taken: %s", window, when)
	}
}

func uniqueWindow(t *testRun) {
	elsewhere := t.second()
	m := t.afterUnique(0, t.lease())
	t.push(m)
	t.isTaken(t.q, m.ID, "the message waits")
	t.ack(t.takeID(m.ID))
	t.isTaken(t.q, m.ID, "the message is done")
	t.isTaken(elsewhere, m.ID, "the message is done, and another client pushes")
	t.nothing("all further pushes were rejected")

	batch := t.afterUnique(0, t.lease())
	t.expect(batch)
	errs := t.q.Schedule(t.ctx, []backend.Message{batch, batch})
	t.must(at(errs, 0), "scheduling the first of two messages of one id")
	t.want(at(errs, 1), backend.ErrDuplicate, "scheduling the second of two messages of one id")
	t.ack(t.takeID(batch.ID))

	plain := t.after(0)
	t.push(plain)
	t.isTaken(t.q, plain.ID, "a message without a window waits")
	t.ack(t.takeID(plain.ID))
	t.push(plain)
	t.ack(t.takeID(plain.ID))
	t.nothing("all are done")
}

func uniqueDone(t *testRun) {
	window := t.lease()
	end := func(how string, do func(backend.Delivery)) {
		m := t.afterUnique(0, window)
		t.push(m)
		do(t.takeID(m.ID))
		t.isTaken(t.q, m.ID, how)
	}
	end("the message is done", func(d backend.Delivery) { t.ack(d) })
	end("the message is dead", func(d backend.Delivery) { t.must(t.deadLetter(d, "of the check"), "Dead") })
	if t.has(backend.Redriving) {
		letter := t.theLetter()
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{letter.ID})), "deleting a dead letter")
		t.isTaken(t.q, letter.ID, "the dead letter is deleted")
	}
	if t.has(backend.Cancelling) {
		m := t.afterUnique(t.Tick, window)
		t.push(m)
		t.must(t.cancelID(m.ID), "cancelling")
		t.isTaken(t.q, m.ID, "the message is cancelled")
	}
	t.nothing("all have ended")
}

// uniqueEnded begins the window before the message is due. Only the fake clock shows that it lasts
// until its end.
func uniqueEnded(t *testRun) {
	window := 2 * t.Tick
	m := t.afterUnique(t.Tick, window)
	for range 2 { // the second time, the first window has ended
		t.push(m)
		end := t.now().Add(window)
		t.pass(t.Tick + t.lag())
		t.ack(t.takeID(m.ID))
		if t.fake != nil {
			t.pass(end.Sub(t.now()) - 1)
			t.isTaken(t.q, m.ID, "the window is about to end")
		}
		t.pass(max(0, end.Sub(t.now())) + t.traits.Resolution)
	}
	plain := backend.Message{ID: m.ID, Body: []byte("without a window")}
	t.push(plain)
	t.ack(t.takeID(m.ID))
	t.push(plain)
	t.ack(t.takeID(m.ID))
}

func uniqueRace(t *testRun) {
	const ids, pushers = 20, 16
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	queues := []backend.Queue{t.q, t.second()}
	var done atomic.Int64
	work := func() error {
		return t.work(ctx, t.q, func(d backend.Delivery) error {
			err := outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()}))
			t.expectNoMore(d.ID, "acknowledged")
			done.Add(1)
			return err
		})
	}
	t.all(work, func() error {
		defer stop()
		for range ids {
			if err := t.contend(queues, pushers); err != nil {
				return err
			}
		}
		return nil
	})
	t.grace()
	t.ack(t.takeAll(ids-int(done.Load()), ids)...)
	t.nothing("all are done")
}

// contend pushes one id from many goroutines.
func (t *testRun) contend(queues []backend.Queue, pushers int) error {
	m := t.afterUnique(0, t.lease())
	t.expect(m)
	outcomes := make(chan error, pushers)
	for i := range pushers {
		go func() { outcomes <- outcome(queues[i%len(queues)].Schedule(t.ctx, []backend.Message{m})) }()
	}
	accepted := 0
	for range pushers {
		switch err := <-outcomes; {
		case err == nil:
			accepted++
		case !errors.Is(err, backend.ErrDuplicate):
			return fmt.Errorf("pushing an id that others push at the same time: %w", err)
		}
	}
	if accepted != 1 {
		return fmt.Errorf("%d of %d pushes of the id %s were accepted", accepted, pushers, m.ID)
	}
	return nil
}
