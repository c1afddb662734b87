package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 5: leases exclude.
var leaseChecks = []Check{
	{
		Name: "lease-excludes", Invariant: 5,
		Rule: "While one worker's lease lasts, no other worker gets the message.",
		run:  leaseExcludes,
	},
	{
		Name: "lease-ends", Invariant: 8,
		Rule: "A message whose lease has ended is handed out again, whole, under a new lease.",
		run:  leaseEnds,
	},
	{
		Name: "stale-ack", Invariant: 5,
		Rule: "An ack under a lease that has ended returns ErrLeaseLost and changes nothing.",
		run:  func(t *testRun) { t.stale("Ack") },
	},
	{
		Name: "stale-nack", Invariant: 5,
		Rule: "A nack under a lease that has ended returns ErrLeaseLost and changes nothing.",
		run:  func(t *testRun) { t.stale("Nack") },
	},
	{
		Name: "stale-extend", Invariant: 5,
		Rule: "An extension of a lease that has ended returns ErrLeaseLost and changes nothing.",
		run:  func(t *testRun) { t.stale("Extend") },
	},
	{
		Name: "stale-dead", Invariant: 5,
		Rule: "A dead-letter request under a lease that has ended returns ErrLeaseLost and changes nothing.",
		run:  func(t *testRun) { t.stale("Dead") },
	},
	{
		Name: "settle-once", Invariant: 5,
		Rule: "A delivery is settled once: later settles return ErrLeaseLost, as does a settle under a lease that was never given.",
		run:  settleOnce,
	},
	{
		Name: "extend-holds", Invariant: 5,
		Rule: "An extended lease lasts until its new end, which Extend returns, and no longer.",
		run:  extendHolds,
	},
	{
		Name: "extend-shortens", Invariant: 5,
		Rule: "An extension to an earlier end ends the lease earlier.",
		run:  extendShortens,
	},
	{
		Name: "lease-end-is-seen", Invariant: 8,
		Rule: "The first call after a lease has ended finds the message waiting: Peek, Cancel, Reschedule or a push of its id.",
		run:  leaseEndIsSeen,
	},
}

// settles are the methods that need a lease in force; Extend extends it.
var settles = map[string]func(ctx context.Context, q backend.Queue, l backend.Lease, extend time.Duration) error{
	"Ack": func(ctx context.Context, q backend.Queue, l backend.Lease, _ time.Duration) error {
		return outcome(q.Ack(ctx, []backend.Lease{l}))
	},
	"Nack": func(ctx context.Context, q backend.Queue, l backend.Lease, _ time.Duration) error {
		return outcome(q.Nack(ctx, []backend.Return{{Lease: l}}))
	},
	"Nack, untouched,": func(ctx context.Context, q backend.Queue, l backend.Lease, _ time.Duration) error {
		return outcome(q.Nack(ctx, []backend.Return{{Lease: l, Untouched: true}}))
	},
	"Dead": func(ctx context.Context, q backend.Queue, l backend.Lease, _ time.Duration) error {
		return outcome(q.Dead(ctx, []backend.DeadLetterRequest{{Lease: l, Reason: "of the check"}}))
	},
	"Extend": func(ctx context.Context, q backend.Queue, l backend.Lease, extend time.Duration) error {
		_, errs := q.Extend(ctx, []backend.Lease{l}, extend)
		return outcome(errs)
	},
}

func leaseExcludes(t *testRun) {
	id, asked := t.pushAfter(0), t.now()
	d := t.takeIDFor(id, 4*t.Tick+t.noise())
	t.ends(d.Until, asked, 4*t.Tick+t.noise())
	t.quietFor(t.Tick, "it is leased")
	t.quietFor(t.Tick, "it is leased")
	t.hush(2*t.Tick, "it is leased")
	t.ack(d)
	t.nothing("it is done")
}

func leaseEnds(t *testRun) {
	id := t.pushAfter(0)
	for range 3 {
		t.takeIDFor(id, t.Tick)
		t.quietFor(t.Tick, "it is leased")
		t.grace()
	}
	t.ack(t.takeID(id))
}

func (t *testRun) takeIDFor(id string, lease time.Duration) backend.Delivery {
	d := t.takeFor(lease)
	if d.ID != id {
		t.fail("message %s came; expected was %s", d.ID, id)
	}
	return d
}

// stale settles under a lease that has ended: before another worker has the message, while it has,
// and after it is done.
func (t *testRun) stale(op string) {
	settle := func(d backend.Delivery) error { return settles[op](t.ctx, t.q, d.Lease(), t.Tick) }
	id := t.pushAfter(0)
	old := t.takeIDFor(id, t.Tick)
	t.pass(t.Tick + t.traits.Resolution)
	t.want(settle(old), backend.ErrLeaseLost, "%s after the lease ended", op)
	t.pass(t.traits.Sweep)
	holder := t.takeID(id)
	t.want(settle(old), backend.ErrLeaseLost, "%s under the old lease while another worker holds the message", op)
	t.pass(t.Tick + t.lag())
	t.nothing("the other worker holds it")
	t.ack(holder)
	t.want(settle(old), backend.ErrLeaseLost, "%s under the old lease after the message is done", op)
	t.nothing("it is done")
}

func settleOnce(t *testRun) {
	for _, first := range []string{"Ack", "Nack", "Dead"} {
		t.pushAfter(0)
		d := t.take()
		forged := d.Lease()
		forged.Token.Lo++
		t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{forged})), backend.ErrLeaseLost, "Ack under a lease that was never given")
		forged.Token = backend.Token{}
		t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{forged})), backend.ErrLeaseLost, "Ack under a lease without a token")
		if first == "Nack" {
			t.must(t.tryNack(d, 1000*t.Tick), "Nack")
		} else {
			t.must(settles[first](t.ctx, t.q, d.Lease(), t.Tick), "%s", first)
		}
		t.expectNoMore(d.ID, "settled with "+first)
		for second, settle := range settles {
			t.want(settle(t.ctx, t.q, d.Lease(), t.Tick), backend.ErrLeaseLost, "%s after %s", second, first)
		}
		t.nothing("it was settled with " + first)
	}
}

func extendHolds(t *testRun) {
	id := t.pushAfter(0)
	d := t.takeIDFor(id, 2*t.Tick+t.noise())
	asked := t.now()
	end, err := t.extend(d, 6*t.Tick+2*t.noise())
	t.must(err, "extending the lease")
	t.ends(end, asked, 6*t.Tick+2*t.noise())
	t.quietFor(2*t.Tick+t.noise(), "it is leased")
	t.quietFor(2*t.Tick, "its lease was extended")
	_, err = t.extend(d, 4*t.Tick)
	t.must(err, "extending the lease again")
	t.quietFor(4*t.Tick, "its lease was extended again")
	t.pass(t.traits.Resolution)
	t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), backend.ErrLeaseLost, "Ack after the extended lease ended")
	t.pass(t.traits.Sweep)
	t.ack(t.takeID(id))
}

func extendShortens(t *testRun) {
	id := t.pushAfter(0)
	d := t.takeIDFor(id, 100*t.Tick)
	_, err := t.extend(d, t.Tick)
	t.must(err, "shortening the lease")
	t.quietFor(t.Tick, "it is leased")
	t.grace()
	t.ack(t.takeID(id))
}

// leaseEndIsSeen gives a store the time for a sweep.
func leaseEndIsSeen(t *testRun) {
	lease := t.Tick + t.noise()
	ended := func() string {
		id := t.pushAfter(0)
		t.takeIDFor(id, lease)
		t.pass(lease + t.lag())
		return id
	}
	if t.has(backend.Peeking) {
		id := ended()
		t.eventually(0, "Peek of a message whose lease has ended", func() bool {
			ps := t.peekAll(10)
			return len(ps) == 1 && ps[0].ID == id && (!t.has(backend.CountingAttempts) || ps[0].Attempts == 1)
		})
		t.ack(t.takeID(id))
	}
	if t.has(backend.Rescheduling) {
		id := ended()
		t.expectAgain(id, t.now().Add(t.Tick))
		t.seesEnd("Reschedule", func() error { return t.move(id, t.Tick) })
		t.nothing("it was rescheduled")
		t.pass(t.Tick)
		t.grace()
		t.ack(t.takeID(id))
	}
	if t.has(backend.CancelNotFound) {
		id := ended()
		t.seesEnd("Cancel", func() error { return t.cancelID(id) })
		t.nothing("it was cancelled")
	}
	if t.has(backend.Deduplicating) && t.has(backend.OwnIDs) {
		id := ended()
		t.want(outcome(t.q.Schedule(t.ctx, []backend.Message{{ID: id}})), backend.ErrDuplicate, "pushing the id of a message whose lease has ended")
		t.ack(t.takeID(id))
	}
}

// seesEnd repeats a call on a message whose lease has ended until the store has noticed the end.
func (t *testRun) seesEnd(what string, do func() error) {
	t.eventually(0, what+" of a message whose lease has ended", func() bool {
		err := do()
		if errors.Is(err, backend.ErrInFlight) && t.lag() > 0 {
			return false
		}
		t.must(err, "%s of a message whose lease has ended", what)
		return true
	})
}
