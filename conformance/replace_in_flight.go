package conformance

import (
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
)

// Pushes that replace the message of their id while it is in flight.
var replaceInFlightChecks = []Check{
	{
		Name: "replace-in-flight", Invariant: 4, needs: []backend.Feature{backend.ReplacingInFlight},
		Rule: "A push with AfterInFlight of an id in flight leaves its worker the lease. When that ends, by Ack, Nack, Dead or in time, the newest such message waits, and nothing else is left: with its own body, headers, due time and place in the push order, and attempts from 1.",
		run:  replaceInFlight,
	},
	{
		Name: "replace-in-flight-until-then", Invariant: 4, needs: []backend.Feature{backend.ReplacingInFlight},
		Rule: "Until the lease of a message ends that was replaced in flight, no worker gets the id; Cancel, Reschedule and a push with Replace alone return ErrInFlight, another push ErrDuplicate; Extend extends; Get shows the new message in flight with 0 attempts; Stats counts one in flight.",
		run:  replaceInFlightUntilThen,
	},
	{
		Name: "replace-in-flight-max-wait", Invariant: 1, needs: []backend.Feature{backend.ReplacingInFlight},
		Rule: "MaxWait of a push with AfterInFlight counts from the first such push of the lease, not from a push of what is in flight; when that lease has ended, from the first push of what waits.",
		run:  replaceInFlightMaxWait,
	},
	{
		Name: "replace-in-flight-wake-up", Invariant: 12, needs: []backend.Feature{backend.ReplacingInFlight},
		Rule: "A waiting worker of another client gets a message that was replaced in flight when the lease before it ends, by Ack, Nack, Dead or in time.",
		run:  replaceInFlightWakeUp,
	},
	{
		Name: "replace-in-flight-race", Invariant: 6, needs: []backend.Feature{backend.ReplacingInFlight, backend.Cancelling},
		Rule: "When pushes with AfterInFlight, Receive, Ack, Nack and Cancel race for a message, through one client or two, some order of the calls explains what they returned, and never is an older content handed out after a newer push returned nil.",
		run:  func(t *testRun) { t.replaceRounds(40, race{inFlight: true}) },
	},
}

// replaceHeld pushes a replacement for a message in flight. It may be handed out when replacedEnded
// says so.
func (t *testRun) replaceHeld(id string, delay time.Duration) (due time.Time) {
	m := t.replacing(id, delay)
	m.AfterInFlight = true
	due = t.now().Add(delay)
	t.expect(m)
	t.expectNoMore(id, "in flight")
	t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "replacing a message in flight")
	return due
}

// leaseEnds are the ways in which a lease ends. That in time is the one without a call.
func (t *testRun) leaseEnds() map[string]func(d backend.Delivery) error {
	nack := func(r backend.Return) func(backend.Delivery) error {
		return func(d backend.Delivery) error {
			r.Lease = d.Lease()
			return outcome(t.q.Nack(t.ctx, []backend.Return{r}))
		}
	}
	ends := map[string]func(d backend.Delivery) error{
		"acknowledged":         func(d backend.Delivery) error { return outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})) },
		"given back":           nack(backend.Return{}),
		"given back for long":  nack(backend.Return{Delay: 1000 * time.Hour}),
		"given back untouched": nack(backend.Return{Untouched: true}),
		"dead-lettered":        func(d backend.Delivery) error { return t.deadLetter(d, "of the check") },
		"left":                 nil,
	}
	if t.has(backend.ChangingHeaders) {
		ends["given back with headers"] = nack(backend.Return{NewHeaders: true, Headers: map[string]string{"of": "the nack"}})
	}
	return ends
}

func replaceInFlight(t *testRun) {
	for how, end := range t.leaseEnds() {
		for _, delay := range []time.Duration{0, t.Tick} {
			id := t.pushAfter(0)
			lease := t.lease()
			if end == nil {
				lease = t.Tick + 2*t.noise()
			}
			if end == nil && delay > 0 {
				delay += lease // due only after the end
			}
			d := t.takeIDFor(id, lease)
			t.replaceHeld(id, 1000*time.Hour)
			due := t.replaceHeld(id, delay)
			if end == nil {
				t.pass(lease + t.lag())
			} else {
				t.must(end(d), "the message was replaced in flight, and is %s", how)
			}
			t.expectAgain(id, due)
			if delay > 0 && t.fake != nil {
				t.nothing("the message in flight was " + how + ", and the one that replaced it is due later")
			}
			t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), backend.ErrLeaseLost, "acknowledging a message that was %s", how)
			t.pass(delay + t.lag())
			t.ack(t.takeFirst(id, "was in flight and then "+how))
			t.nothing("the message that replaced one in flight, which was " + how + ", is done")
			if t.has(backend.Redriving) {
				letters, _, err := t.q.ListDead(t.ctx, "", 10)
				if err != nil || len(letters) > 0 {
					t.fail("a message that was replaced in flight, and then %s, left %d dead letters, %v", how, len(letters), err)
				}
			}
		}
	}
	if t.has(backend.Rescheduling) {
		t.moveReplaced()
	}
	t.replaceMixed()
	if t.has(backend.Ordering) {
		t.orderOfReplaced()
	}
}

// orderOfReplaced has a message in flight be replaced, and another be pushed for the same due time,
// before the lease ends.
func (t *testRun) orderOfReplaced() {
	for how, end := range t.leaseEnds() {
		id, lease, delay := t.pushAfter(0), t.lease(), t.Tick
		if end == nil {
			lease = t.Tick + 2*t.noise()
			delay += lease
		}
		d := t.takeIDFor(id, lease)
		due := t.now().Add(delay)
		m, next := t.at(due), t.at(due)
		m.ID, m.Replace, m.AfterInFlight = id, true, true
		t.expect(m)
		t.expectNoMore(id, "in flight")
		t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "replacing a message in flight")
		t.push(next)
		if end != nil {
			t.must(end(d), "the message was replaced in flight, and is %s", how)
		}
		t.expectAgain(id, due)
		t.pass(due.Sub(t.now()) + t.lag())
		t.ack(t.takeFirst(id, "was in flight and then "+how))
		t.ack(t.takeID(next.ID))
	}
}

// replaceMixed replaces two messages in flight in one batch, of which one may not be replaced.
func (t *testRun) replaceMixed() {
	first, second := t.pushAfter(0), t.pushAfter(0)
	held := map[string]backend.Delivery{}
	for range 2 {
		d := t.take()
		held[d.ID] = d
	}
	batch := []backend.Message{t.replacing(first, 0), t.replacing(second, 0), t.replacing(first, 0), t.replacing(second, 0)}
	batch[0].AfterInFlight, batch[2].AfterInFlight = true, true
	t.expect(batch[2]) // the newest of its id
	t.expectNoMore(first, "in flight")
	errs := t.q.Schedule(t.ctx, batch)
	for i, want := range []error{nil, backend.ErrInFlight, nil, backend.ErrInFlight} {
		t.want(at(errs, i), want, "replacing two messages in flight, one with AfterInFlight: entry %d of the batch", i)
	}
	t.ack(held[second])
	t.expectAgain(first, time.Time{})
	d := held[first]
	t.must(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), "acknowledging")
	t.ack(t.takeFirst(first, "was in flight"))
	t.nothing("both are done")
}

// moveReplaced moves a message that was replaced in flight, when its lease has ended. No worker looks
// in between.
func (t *testRun) moveReplaced() {
	id := t.pushAfter(0)
	lease := t.Tick + 2*t.noise()
	d := t.takeIDFor(id, lease)
	t.replaceHeld(id, 1000*time.Hour)
	t.pass(lease + t.lag())
	t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), backend.ErrLeaseLost, "acknowledging after the end of the lease")
	t.want(t.deadLetter(d, "of the check"), backend.ErrLeaseLost, "dead-lettering after the end of the lease")
	if t.has(backend.Getting) {
		infos, errs := t.q.Get(t.ctx, []string{id})
		t.must(outcome(errs), "Get")
		if got := infos[0]; got.State != backend.StateScheduled || got.Attempts != 0 {
			t.fail("Get shows a message that was replaced in flight, when the lease has ended, as %v, %d attempts; want scheduled, 0", got.State, got.Attempts)
		}
	}
	t.expectAgain(id, time.Time{})
	t.must(t.move(id, 0), "rescheduling a message that was replaced in flight, when the lease has ended")
	t.ack(t.takeFirst(id, "was in flight, left, and moved"))
	t.nothing("the message that was moved is done")
}

func replaceInFlightUntilThen(t *testRun) {
	id := t.pushAfter(0)
	d := t.takeID(id)
	due := t.replaceHeld(id, 0)
	t.nothing("the message was replaced, and is in flight")
	if t.has(backend.Getting) {
		t.getsReplaced(d)
	}
	if t.has(backend.Counting) {
		if s := t.stats(); s.InFlight != 1 || s.Scheduled+s.Ready+s.Dead != 0 {
			t.fail("Stats counts %s; want one message in flight", statsText(s))
		}
	}
	if t.has(backend.Cancelling) {
		t.want(t.cancelID(id), backend.ErrInFlight, "cancelling a message that was replaced in flight")
	}
	if t.has(backend.Rescheduling) {
		t.want(t.move(id, 0), backend.ErrInFlight, "rescheduling a message that was replaced in flight")
	}
	m := t.replacing(id, 0)
	t.want(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), backend.ErrInFlight, "replacing a message that was replaced in flight")
	m.Replace = false
	err := outcome(t.q.Schedule(t.ctx, []backend.Message{m}))
	t.want(err, backend.ErrDuplicate, "pushing the id of a message in flight")
	if t.has(backend.Getting) {
		t.must(saysState(err, backend.StateInFlight), "pushing the id of a message that was replaced in flight")
	}

	ends, errs := t.q.Extend(t.ctx, []backend.Lease{d.Lease()}, 2*t.lease())
	t.must(outcome(errs), "extending the lease of a message that was replaced")
	t.pass(t.Tick)
	t.nothing(fmt.Sprintf("the lease ends only at %v", ends[0]))
	t.must(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), "acknowledging")
	t.expectAgain(id, due)
	second := t.takeFirst(id, "was in flight")
	due = t.replaceHeld(id, 0)
	t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), backend.ErrLeaseLost, "acknowledging the first delivery of a message that was replaced twice")
	t.nothing("the message is in flight at its second worker")
	t.must(outcome(t.q.Ack(t.ctx, []backend.Lease{second.Lease()})), "acknowledging the second delivery")
	t.expectAgain(id, due)
	t.ack(t.takeFirst(id, "was in flight again"))

	m = t.replacing(id, 0)
	m.AfterInFlight = true
	t.expect(m)
	t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "pushing with AfterInFlight when no message of the id is there")
	t.ack(t.takeFirst(id, "was not there"))
	t.nothing("all are done")
}

// getsReplaced looks at the message of a lease, which was replaced.
func (t *testRun) getsReplaced(d backend.Delivery) {
	infos, errs := t.q.Get(t.ctx, []string{d.ID})
	t.must(outcome(errs), "Get")
	got := infos[0]
	t.must(sameContent(backend.Delivery{ID: d.ID, Body: got.Body, Headers: got.Headers}, t.pushed[d.ID].Message), "Get of a message that was replaced in flight")
	if got.State != backend.StateInFlight || got.Attempts != 0 || !got.LeaseUntil.Equal(d.Until) {
		t.fail("Get shows a message that was replaced in flight as %v, %d attempts, leased until %v; want in flight, 0, %v", got.State, got.Attempts, got.LeaseUntil, d.Until)
	}
}

func replaceInFlightMaxWait(t *testRun) {
	id := t.newID()
	push := func(inFlight bool, delay time.Duration) {
		m := t.replacing(id, delay)
		m.MaxWait, m.AfterInFlight = 3*t.Tick, inFlight
		t.expect(m)
		t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{m})), "pushing with MaxWait")
	}
	push(false, 0)
	d := t.takeID(id)
	t.pass(t.Tick)
	first := t.now()
	push(true, 1000*time.Hour)
	t.pass(t.Tick)
	push(true, 1000*time.Hour)
	t.must(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), "acknowledging")
	t.dueByMaxWait(id, first)

	first = t.now()
	push(false, 0)
	lease := t.Tick + 2*t.noise()
	t.takeIDFor(id, lease)
	t.pass(lease + t.lag())
	push(true, 1000*time.Hour) // no worker holds it any more: it counts from the first push
	t.dueByMaxWait(id, first)
	t.nothing("all are done")
}

// dueByMaxWait takes a message that MaxWait makes due 3 ticks after its first push.
func (t *testRun) dueByMaxWait(id string, first time.Time) {
	due := first.Add(3 * t.Tick)
	t.expectAgain(id, due.Add(-t.Skew))
	t.pass(due.Sub(t.now()) + t.lag())
	d := t.takeID(id)
	if over := d.Due.Sub(due); t.fake != nil && (over < 0 || over > t.traits.Resolution) {
		t.fail("the message was due %v after its first push; want %v", d.Due.Sub(first), 3*t.Tick)
	}
	t.ack(d)
}

func replaceInFlightWakeUp(t *testRun) {
	for how, end := range t.leaseEnds() {
		id, lease := t.pushAfter(0), t.lease()
		if end == nil {
			lease = t.Tick + 2*t.noise()
		}
		asked := t.now()
		d := t.takeIDFor(id, lease)
		due := t.replaceHeld(id, 0)
		s := t.sleep(t.second())
		if end == nil {
			due = asked.Add(lease)
			t.pass(lease)
		} else {
			t.must(end(d), "the message was replaced in flight, and is %s", how)
		}
		t.expectAgain(id, due)
		t.grace()
		t.ackOn(s.q, s.woken(id, "the message before it was "+how))
	}
}

// A race is how messages are pushed in replaceRounds.
type race struct {
	inFlight bool // with AfterInFlight, and workers acknowledge too
	lossy    bool // all through the second client, whose replies may be lost
}

// refusal reports whether an error is one that a push of a race may return.
func (r race) refusal(err error) bool {
	return !r.inFlight && errors.Is(err, backend.ErrInFlight) || r.lossy && errors.Is(err, backend.ErrOutcomeUnknown)
}
