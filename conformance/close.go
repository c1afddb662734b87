package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Invariant 10: stopping loses nothing.
var closeChecks = []Check{
	{
		Name: "closed", Invariant: 15,
		Rule: "After Close every method answers ErrClosed and changes nothing; a second Close does nothing.",
		run:  closed,
	},
	{
		Name: "close-wakes", Invariant: 10,
		Rule: "Close wakes a waiting Receive with ErrClosed.",
		run:  closeWakes,
	},
	{
		Name: "close-keeps", Invariant: 10,
		Rule: "Closing a handle leaves its messages to others, and those it had leased once their leases end.",
		run:  closeKeeps,
	},
	{
		Name: "close-leaves-no-goroutine", Invariant: 10,
		Rule: "When queue and backend are closed, none of their goroutines is left.",
		run:  closeLeavesNoGoroutine,
	},
	{
		Name: "stop-returns-untouched", Invariant: 10, needs: []need{attempts},
		Rule: "A Consume that stops gives back what no handler has seen, without spending an attempt, and acknowledges what a handler finishes.",
		run:  stopReturnsUntouched,
	},
}

func closed(t *trial) {
	id := t.pushAfter(t.Tick)
	q, err := t.openOn(t.b, t.name())
	t.must(err, "opening a second handle")
	t.must(q.Close(), "Close")
	t.must(q.Close(), "a second Close")
	lease := []backend.Lease{{ID: id}}
	_, err = q.Receive(t.ctx, 1, t.Tick)
	t.want(err, backend.ErrClosed, "Receive on a closed queue")
	late := t.after(0)
	t.want(outcome(q.Schedule(t.ctx, []backend.Message{late})), backend.ErrClosed, "Schedule on a closed queue")
	t.want(outcome(q.Ack(t.ctx, lease)), backend.ErrClosed, "Ack on a closed queue")
	t.want(outcome(q.Nack(t.ctx, []backend.Return{{Lease: lease[0]}})), backend.ErrClosed, "Nack on a closed queue")
	t.want(outcome(q.Dead(t.ctx, []backend.Burial{{Lease: lease[0]}})), backend.ErrClosed, "Dead on a closed queue")
	_, errs := q.Extend(t.ctx, lease, t.Tick)
	t.want(outcome(errs), backend.ErrClosed, "Extend on a closed queue")
	t.closedOptional(q, id)
	t.nothing("what was scheduled on the closed queue is refused")
	t.pass(t.Tick)
	t.grace()
	t.ack(t.takeID(id))
}

func (t *trial) closedOptional(q backend.Queue, id string) {
	ids := []string{id}
	if c, ok := q.(backend.Canceler); ok {
		t.want(outcome(c.Cancel(t.ctx, ids)), backend.ErrClosed, "Cancel on a closed queue")
	}
	if r, ok := q.(backend.Rescheduler); ok {
		t.want(outcome(r.Reschedule(t.ctx, []backend.Move{{ID: id}})), backend.ErrClosed, "Reschedule on a closed queue")
	}
	if i, ok := q.(backend.Inspector); ok {
		_, err := i.Stats(t.ctx)
		t.want(err, backend.ErrClosed, "Stats on a closed queue")
	}
	if d, ok := q.(backend.DeadLetters); ok {
		_, _, err := d.ListDead(t.ctx, "", 1)
		t.want(err, backend.ErrClosed, "ListDead on a closed queue")
		t.want(outcome(d.Redrive(t.ctx, ids)), backend.ErrClosed, "Redrive on a closed queue")
		t.want(outcome(d.DeleteDead(t.ctx, ids)), backend.ErrClosed, "DeleteDead on a closed queue")
	}
	if p, ok := peeker(q); ok {
		_, _, err := p.Peek(t.ctx, "", 1)
		t.want(err, backend.ErrClosed, "Peek on a closed queue")
	}
	if p, ok := purger(q); ok {
		_, err := p.Purge(t.ctx)
		t.want(err, backend.ErrClosed, "Purge on a closed queue")
	}
}

func closeWakes(t *trial) {
	q, err := t.openOn(t.b, t.name())
	t.must(err, "opening a second handle")
	t.pushAfter(100 * t.Tick)
	s := t.sleep(q)
	t.must(q.Close(), "Close")
	select {
	case <-s.result:
		t.want(s.err, backend.ErrClosed, "Receive on a queue that is being closed")
	case <-time.After(t.Patience):
		t.fail("a waiting Receive slept on for %v after Close", t.Patience)
	}
}

func closeKeeps(t *trial) {
	q := t.second()
	m := t.after(0)
	t.push(m, t.after(0))
	ds, err := t.receive(q, 1, t.Tick)
	t.must(err, "taking a message")
	if t.traits.Leases == backend.InConnection {
		t.expectAgain(ds[0].ID, time.Time{}) // it ends with the handle
	}
	t.must(q.Close(), "Close")
	t.pass(t.Tick + t.lag())
	rest := t.takeAll(2, 2)
	for _, d := range rest {
		if d.ID == ds[0].ID && d.Attempt != 2 && !t.traits.UncountedAttempts {
			t.fail("message %s came at attempt %d after the holder closed its handle; want 2", d.ID, d.Attempt)
		}
	}
	t.ack(rest...)
}

func closeLeavesNoGoroutine(t *trial) {
	// A backend that is open may start goroutines in its own time.
	t.must(t.q.Close(), "closing the first queue")
	t.must(t.b.Close(), "closing the first backend")
	ignored := []goleak.Option{goleak.IgnoreCurrent()}
	for _, f := range t.Shared {
		ignored = append(ignored, goleak.IgnoreAnyFunction(f))
	}
	b, cleanup, err := t.New(t.ctx)
	t.must(err, "making a backend")
	q, err := t.openOn(b, t.name())
	t.must(err, "opening a queue")
	mine := t.q
	t.q = q
	t.pushAfter(0)
	t.pushAfter(100 * t.Tick)
	t.ack(t.take())
	t.sleep(q)
	t.q = mine
	t.must(q.Close(), "closing the queue")
	t.must(b.Close(), "closing the backend")
	if cleanup != nil {
		cleanup()
	}
	t.must(goleak.Find(ignored...), "after Close")
}

func stopReturnsUntouched(t *trial) {
	const n = 20
	for range n {
		t.pushAfter(0)
	}
	q := t.portable(delayq.WithLease(t.longLease()))
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	var handled atomic.Int64
	err := q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
		if handled.Add(1) == 3 {
			stop()
		}
		return nil
	}, delayq.Workers(4))
	t.must(err, "Consume")
	left := n - int(handled.Load())
	for _, d := range t.takeAll(left, 3) {
		if d.Attempt != 1 {
			t.fail("message %s came at attempt %d after a Consume stopped; no handler had seen it", d.ID, d.Attempt)
		}
		t.ack(d)
	}
	t.handled()
	t.nothing(fmt.Sprintf("%d were handled and %d handed out since", handled.Load(), left))
}
