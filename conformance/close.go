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
		Rule: "After Close every method of a handle or a backend returns ErrClosed, for each message, and changes nothing; a second Close does nothing.",
		run:  closed,
	},
	{
		Name: "close-wakes", Invariant: 10,
		Rule: "Close wakes a waiting Receive with ErrClosed.",
		run:  closeWakes,
	},
	{
		Name: "close-keeps", Invariant: 10,
		Rule: "After a handle is closed, others get its messages, and those that it had leased when their leases end and not before. When the last one is closed, the next finds all as it was: leases, dead letters and ids that UniqueFor keeps; no lease from before settles a later delivery.",
		run:  closeKeeps,
	},
	{
		Name: "close-takes-nothing", Invariant: 10,
		Rule: "A Receive that is called while its handle closes takes no message that is pushed after Close has returned.",
		run:  closeTakesNothing,
	},
	{
		Name: "close-leaves-no-goroutine", Invariant: 10, Alone: true,
		Rule: "When queue and backend are closed, no goroutine of theirs is left.",
		run:  closeLeavesNoGoroutine,
	},
	{
		Name: "stop-returns-untouched", Invariant: 10, needs: []backend.Feature{backend.CountingAttempts},
		Rule: "A Consume that stops gives back messages that no handler has seen, without spending an attempt, and acknowledges those that a handler finishes.",
		run:  stopReturnsUntouched,
	},
	{
		Name: "close-race", Invariant: 10, Alone: true,
		Rule: "A Receive that is woken, cancelled and closed at the same moment returns and leaves no goroutine.",
		run:  closeRace,
	},
}

func closed(t *testRun) {
	delay := t.Tick + t.noise() // long enough for a busy machine to take the other message first
	id := t.pushAfter(delay)
	q, err := t.openOn(t.b, t.name())
	t.must(err, "opening a second handle")
	t.must(q.Close(), "Close")
	t.must(q.Close(), "a second Close")
	t.pushAfter(0)
	d := t.take()
	_, err = q.Receive(t.ctx, 1, t.Tick)
	t.want(err, backend.ErrClosed, "Receive on a closed queue")
	t.changesNothing(t.ctx, q, d, backend.ErrClosed, "on a closed queue")
	waiting := d
	waiting.ID = id
	t.changesNothing(t.ctx, q, waiting, backend.ErrClosed, "on a closed queue")
	t.nothing("what is scheduled on the closed queue is refused")
	t.ack(d)
	t.pass(delay)
	t.grace()
	t.ack(t.takeID(id))
	t.closedBackend()
}

// closedBackend closes a new backend with an open queue and a waiting Receive.
func (t *testRun) closedBackend() {
	b, cleanup, err := t.New(t.ctx)
	t.must(err, "making a backend")
	if cleanup != nil {
		defer cleanup()
	}
	q, err := t.openAsIs(b, t.name()+".other")
	t.must(err, "opening a queue")
	s := t.sleep(q)
	t.must(b.Close(), "closing the backend")
	t.must(b.Close(), "closing the backend a second time")
	_, err = s.ended()
	t.want(err, backend.ErrClosed, "Receive on a queue whose backend is closed")
	t.changesNothing(t.ctx, q, backend.Delivery{ID: "unknown"}, backend.ErrClosed, "on a queue whose backend is closed")
	t.backendFails(t.ctx, b, backend.ErrClosed, "on a closed backend")
}

func closeWakes(t *testRun) {
	q, err := t.openOn(t.b, t.name())
	t.must(err, "opening a second handle")
	t.pushAfter(100 * t.Tick)
	s := t.sleep(q)
	t.must(q.Close(), "Close")
	_, err = s.ended()
	t.want(err, backend.ErrClosed, "Receive on a queue that is being closed")
}

func closeKeeps(t *testRun) {
	q := t.second()
	m := t.after(0)
	t.push(m, t.after(0))
	lease := t.Tick + t.noise()
	ds, err := t.receive(q, 1, lease)
	t.must(err, "taking a message")
	if t.traits.Leases == backend.InConnection {
		t.expectAgain(ds[0].ID, time.Time{}) // it ends with the handle
	}
	t.must(q.Close(), "Close")
	rest := t.takeAll(1, 1) // the leased one would be early
	if t.traits.Leases == backend.InStore {
		t.quietFor(t.Tick, "the lease of the closed handle lasts")
	}
	t.pass(t.noise() + t.lag())
	rest = append(rest, t.takeAll(1, 1)...)
	for _, d := range rest {
		if want := ds[0].Attempt + 1; d.ID == ds[0].ID && d.Attempt != want && t.has(backend.CountingAttempts) {
			t.fail("message %s was handed out at attempt %d after its worker closed the handle; want %d", d.ID, d.Attempt, want)
		}
	}
	t.ack(rest...)
	t.reopensAll()
}

// reopensAll closes the only open handle in the states that a store may not forget then.
func (t *testRun) reopensAll() {
	if t.traits.Leases == backend.InStore {
		id, lease := t.pushAfter(0), t.Tick+t.noise()
		t.takeIDFor(id, lease)
		t.reopen()
		t.pass(lease + t.lag())
		t.ack(t.takeID(id))
		t.staleAfterReopen()
	}
	if t.has(backend.Redriving) {
		id := t.pushAfter(0)
		t.must(t.deadLetter(t.takeID(id), "of the check"), "Dead")
		t.reopen()
		if l := t.theLetter(); l.ID != id {
			t.fail("after all handles were closed the dead letter is %s; want %s", l.ID, id)
		}
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{id})), "DeleteDead")
	}
	if t.has(backend.UniqueWindows) {
		m := t.afterUnique(0, t.lease())
		t.push(m)
		t.ack(t.takeID(m.ID))
		t.reopen()
		t.isTaken(t.q, m.ID, "all handles were closed meanwhile")
	}
	t.nothing("all are done")
}

// reopen closes the check's handle and opens another.
func (t *testRun) reopen() {
	t.must(t.q.Close(), "closing the last handle")
	q, err := t.openOn(t.b, t.name())
	t.must(err, "opening the queue again")
	t.q = q
}

// staleAfterReopen begins with an empty queue, of which a store may forget all but the numbers of
// its leases.
func (t *testRun) staleAfterReopen() {
	if !t.has(backend.OwnIDs) {
		return // a later message has another id
	}
	t.reopen()
	m := t.after(0)
	t.push(m)
	old := t.takeID(m.ID)
	t.ack(old)
	t.reopen()
	t.push(m)
	d := t.takeID(m.ID)
	for op, settle := range settles {
		t.want(settle(t.ctx, t.q, old.Lease(), t.lease()), backend.ErrLeaseLost, "%s under a lease from before all handles were closed", op)
	}
	t.ack(d)
}

func closeTakesNothing(t *testRun) {
	for range t.scaled(8, 500) {
		closing := t.waits(t.b)
		t.must(closing.q.Close(), "Close")
		id := t.pushAfter(0)
		t.grace()
		r := t.resultOf(closing)
		t.want(r.err, backend.ErrClosed, "Receive of a handle that was closed before the push, with %d messages", len(r.ds))
		d := t.takeID(id)
		t.firstAttempt(d)
		t.ack(d)
	}
}

// goroutinesNow returns the goroutines that a check ignores. It closes the first backend, which may
// start some later.
func (t *testRun) goroutinesNow() []goleak.Option {
	t.must(t.q.Close(), "closing the first queue")
	t.must(t.b.Close(), "closing the first backend")
	ignored := []goleak.Option{goleak.IgnoreCurrent()}
	for _, f := range t.Shared {
		ignored = append(ignored, goleak.IgnoreAnyFunction(f))
	}
	return ignored
}

func closeLeavesNoGoroutine(t *testRun) {
	ignored := t.goroutinesNow()
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

func stopReturnsUntouched(t *testRun) {
	const n = 20
	for range n {
		t.pushAfter(0)
	}
	q := t.portable(delayq.WithLease(t.longLease()))
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	var handled atomic.Int64
	err := q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
		switch n := handled.Add(1); {
		case n == 3:
			stop()
		case n > 3: // or all may be handled before the stop
			<-ctx.Done()
			t.moment()
		}
		return nil
	}, delayq.Workers(4))
	t.must(err, "Consume")
	left := n - int(handled.Load())
	for _, d := range t.takeAll(left, 3) {
		if d.Attempt != 1 {
			t.fail("message %s was handed out at attempt %d after a Consume stopped; no handler had seen it", d.ID, d.Attempt)
		}
		t.ack(d)
	}
	t.handled()
	t.nothing(fmt.Sprintf("%d were handled and %d handed out since", handled.Load(), left))
}

// closeRace wakes, cancels and closes waiting Receives at the same time.
func closeRace(t *testRun) {
	ignored := t.goroutinesNow()
	b, cleanup, err := t.New(t.ctx)
	t.must(err, "making a backend")
	name := t.name() + ".race"
	pusher, err := t.openOn(b, name)
	t.must(err, "opening a queue")
	for i := range t.scaled(4, 300) {
		q, err := t.openOn(b, name)
		t.must(err, "opening a queue")
		s := t.asleep(q)
		if i%4 == 0 {
			t.moment()
		}
		m := t.after(0)
		t.expect(m)
		t.all(
			func() error { return outcome(pusher.Schedule(t.ctx, []backend.Message{m})) },
			q.Close,
			func() error {
				if i%2 == 0 {
					s.cancel()
				}
				return nil
			},
		)
		_, _ = s.ended()
	}
	t.must(pusher.Close(), "closing the queue")
	t.must(b.Close(), "closing the backend")
	if cleanup != nil {
		cleanup()
	}
	t.must(goleak.Find(ignored...), "after Close")
}
