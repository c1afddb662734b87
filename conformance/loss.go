package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

// Invariant 2: never lost.
var lossChecks = []Check{
	{
		Name: "nack-keeps", Invariant: 2,
		Rule: "A message is handed out again, whole, each time it is given back.",
		run:  nackKeeps,
	},
	{
		Name: "batch-outcomes", Invariant: 2,
		Rule: "Each message of a batch has its own outcome; a failure does not affect the other messages.",
		run:  batchOutcomes,
	},
	{
		Name: "receive-limit", Invariant: 2,
		Rule: "Receive returns between one message and its limit, and leaves the rest in the queue.",
		run:  receiveLimit,
	},
	{
		Name: "context-ended", Invariant: 2,
		Rule: "A call whose context has ended fails with the context's error, of a deadline too and whatever the context's cause is; a Receive takes nothing. A call on several messages returns an error for each; Get and Extend also return an empty entry for each.",
		run:  contextEnded,
	},
	{
		Name: "context-end-loses-nothing", Invariant: 2,
		Rule: "A Receive whose context ends while it waits takes nothing: the next one gets the message, untouched.",
		run:  contextEndLosesNothing,
	},
	{
		Name: "stats", Invariant: 2, needs: []backend.Feature{backend.CountingScheduled},
		Rule: "Stats counts each message once, in its state, and returns the earliest due time.",
		run:  statsCount,
	},
	{
		Name: "stats-known", Invariant: 2, needs: []backend.Feature{backend.Counting},
		Rule: "Stats counts ready messages and dead letters; what the backend cannot count is Unknown, and that is nothing where it counts scheduled messages.",
		run:  statsKnown,
	},
	{
		Name: "stats-due", Invariant: 2, needs: []backend.Feature{backend.CountingScheduled},
		Rule: "Stats counts each scheduled message in the interval in which it falls due, and returns for how long the oldest ready message has been due.",
		run:  statsDue,
	},
	{
		Name: "stats-activity", Invariant: 2, needs: []backend.Feature{backend.CountingActivity},
		Rule: "Stats counts each message that a push has stored, a replacement too, each that was acknowledged, one that was replaced in flight too, and how late each came when it was handed out for the first time, and again when it was given back untouched or redriven, of all handles, within about a second and those of a closed handle at once; and no other call.",
		run:  statsActivity,
	},
}

func nackKeeps(t *testRun) {
	const n, rounds = 10, 3
	for range n {
		t.pushAfter(0)
	}
	for range rounds {
		for _, d := range t.takeAll(n, 4) {
			t.nack(d, 0)
		}
	}
	t.ack(t.takeAll(n, 4)...)
	t.nothing("all are done")
}

func batchOutcomes(t *testRun) {
	first, other := t.after(0), t.after(0)
	t.push(first)
	t.expect(other)
	batch := []backend.Message{t.rejected(first), other, t.rejected(other)}
	refusal := t.refusal()
	errs := t.q.Schedule(t.ctx, batch)
	if refusal != nil && len(errs) != len(batch) {
		t.fail("a batch of three, of which two are rejected, had %d outcomes", len(errs))
	}
	t.want(at(errs, 0), refusal, "scheduling a rejected message as the first of a batch")
	t.must(at(errs, 1), "scheduling a message between rejected ones")
	t.want(at(errs, 2), refusal, "scheduling a rejected message as the last of a batch")
	n := 2
	if refusal == nil {
		n = len(batch) + 1
	}
	t.ackWithForged(t.takeAll(n, 1))
	t.nothing("all are done")
}

// refusal is the error of a message that the store rejects; nil where it accepts every message.
func (t *testRun) refusal() error {
	switch {
	case t.has(backend.Deduplicating):
		return backend.ErrDuplicate
	case !t.has(backend.KeepingHeaders):
		return backend.ErrUnsupported
	}
	return nil
}

// rejected makes a message that the store rejects in a batch with another, where it rejects any.
func (t *testRun) rejected(other backend.Message) backend.Message {
	m := backend.Message{ID: other.ID, Body: []byte("another body")}
	if !t.has(backend.Deduplicating) {
		m = t.after(0)
		m.Headers = map[string]string{"of": m.ID}
		if t.has(backend.KeepingHeaders) {
			t.expect(m)
		}
	}
	return m
}

// ackWithForged acknowledges messages in one call with a lease that was never given.
func (t *testRun) ackWithForged(ds []backend.Delivery) {
	forged := ds[0].Lease()
	forged.Token.Lo++
	leases := []backend.Lease{forged}
	for _, d := range ds {
		leases = append(leases, d.Lease())
		t.expectNoMore(d.ID, "acknowledged")
	}
	errs := t.q.Ack(t.ctx, leases)
	t.want(at(errs, 0), backend.ErrLeaseLost, "Ack under a lease that was never given, in a batch")
	for i, d := range ds {
		t.must(at(errs, i+1), "acknowledging message %s in a batch with a lease that was never given", d.ID)
	}
}

func receiveLimit(t *testRun) {
	const n = 25
	for range n {
		t.pushAfter(0)
	}
	for left := n; left > 0; {
		ds, err := t.receive(t.q, 4, t.lease())
		t.must(err, "taking up to 4 of %d messages", left)
		t.ack(ds...)
		left -= len(ds)
	}
	t.nothing("all are done")
}

func contextEnded(t *testRun) {
	contexts := t.endedContexts()
	id := t.pushAfter(0)
	for when, ctx := range contexts {
		ds, err := t.q.Receive(ctx, 1, t.lease())
		if len(ds) > 0 {
			t.fail("Receive took %d messages %s", len(ds), when)
		}
		t.want(err, ctx.Err(), "Receive %s", when)
		t.backendFails(ctx, t.b, ctx.Err(), when)
	}
	d := t.takeID(id)
	if d.Attempt != 1 {
		t.fail("a Receive under a context that had ended was counted as an attempt")
	}
	for when, ctx := range contexts {
		t.changesNothing(ctx, t.q, d, ctx.Err(), when)
	}
	t.nothing("all calls failed")
	t.ack(d)
}

// endedContexts returns contexts that have ended, by how.
func (t *testRun) endedContexts() map[string]context.Context {
	ended, cancel := context.WithCancel(t.ctx)
	cancel()
	caused, cancelFor := context.WithCancelCause(t.ctx)
	cancelFor(errors.New("cause of the check"))
	late, cancelLate := context.WithDeadline(t.ctx, time.Now().Add(-time.Second))
	cancelLate() // its deadline has ended it before
	return map[string]context.Context{
		"under a context that had ended":              ended,
		"under a context that had ended with a cause": caused,
		"under a context whose deadline had passed":   late,
	}
}

// backendFails makes the calls on a backend, which must fail.
func (t *testRun) backendFails(ctx context.Context, b backend.Backend, wanted error, when string) {
	_, err := b.Open(ctx, t.name()+".late", t.options())
	t.want(err, wanted, "Open %s", when)
	if t.canList() {
		_, err = b.(admin.Lister).Queues(ctx)
		t.want(err, wanted, "Queues %s", when)
	}
}

// changesNothing makes every call on a message in flight, singly and thrice in a batch. All must
// fail, for each item.
func (t *testRun) changesNothing(ctx context.Context, q backend.Queue, d backend.Delivery, wanted error, when string) {
	for _, n := range []int{1, 3} {
		fails := func(op string, errs []error) {
			t.outcomes(errs, n, op+" "+when+":", func(int) error { return wanted })
		}
		t.changesNoLease(ctx, q, slices.Repeat([]backend.Lease{d.Lease()}, n), fails)
		ms := make([]backend.Message, n)
		for i := range ms {
			ms[i] = t.after(0)
		}
		fails("Schedule", q.Schedule(ctx, ms))
		ids := slices.Repeat([]string{d.ID}, n)
		for verb, call := range t.verbs(true) {
			switch {
			case verb == "InTx" && ctx.Err() != nil: // it takes no context
			case onMany[verb]:
				fails(verb, call(ctx, q, ids))
			default:
				t.want(outcome(call(ctx, q, ids)), wanted, "%s %s", verb, when)
			}
		}
		if t.has(backend.Getting) {
			infos, _ := q.Get(ctx, ids)
			t.emptyEntries("Get "+when, infos, n)
		}
	}
}

// changesNoLease makes the calls on leases.
func (t *testRun) changesNoLease(ctx context.Context, q backend.Queue, ls []backend.Lease, fails func(op string, errs []error)) {
	fails("Ack", q.Ack(ctx, ls))
	for _, untouched := range []bool{false, true} {
		fails(fmt.Sprintf("Nack with Untouched %t", untouched), q.Nack(ctx, each(ls, func(l backend.Lease) backend.Return {
			return backend.Return{Lease: l, Untouched: untouched}
		})))
	}
	fails("Dead", q.Dead(ctx, each(ls, func(l backend.Lease) backend.DeadLetterRequest {
		return backend.DeadLetterRequest{Lease: l, Reason: "of the check"}
	})))
	ends, errs := q.Extend(ctx, ls, t.Tick)
	fails("Extend", errs)
	if len(ends) != len(ls) || slices.ContainsFunc(ends, func(end time.Time) bool { return !end.IsZero() }) {
		t.fail("Extend of %d leases fails, and returns the ends %v", len(ls), ends)
	}
}

// emptyEntries fails unless Get has returned n empty entries.
func (t *testRun) emptyEntries(call string, infos []backend.MessageInfo, n int) {
	if len(infos) != n {
		t.fail("%s returns %d entries for %d ids", call, len(infos), n)
	}
	for _, m := range infos {
		if !reflect.ValueOf(m).IsZero() {
			t.fail("%s returns %+v for an id without a message; want an empty entry", call, m)
		}
	}
}

func contextEndLosesNothing(t *testRun) {
	id := t.pushAfter(t.Tick)
	s := t.sleep(t.q)
	ds, err := s.stop()
	if len(ds) > 0 {
		t.must(t.taken(ds[0]), "a Receive whose context ended") // unless the machine stood still for a tick
		t.ack(ds...)
		return
	}
	t.want(err, context.Canceled, "Receive whose context ended")
	t.pass(t.Tick + t.lag())
	t.moment()
	d := t.takeID(id)
	if d.Attempt != 1 {
		t.fail("the message was handed out at attempt %d; no other worker has had it", d.Attempt)
	}
	t.ack(d)
}

func statsCount(t *testRun) {
	first := t.now()
	due := []time.Time{first.Add(10*t.Tick - t.Skew), first.Add(20*t.Tick - t.Skew)} // or later
	want := func(step string, w backend.Stats) {
		s := t.stats()
		for i := len(due) - int(w.Scheduled); i < len(due); i++ {
			if s.Scheduled < w.Scheduled && !t.now().Before(due[i]) { // the machine stood still for ticks
				w.Scheduled, w.Ready = w.Scheduled-1, w.Ready+1
			}
		}
		if s.Scheduled != w.Scheduled || s.Ready != w.Ready || s.InFlight != w.InFlight || s.Dead != w.Dead {
			t.fail("after %s Stats returns %s; want %s", step, countsOf(s), countsOf(w))
		}
	}
	want("nothing", backend.Stats{})
	t.pushAfter(10 * t.Tick)
	t.pushAfter(20 * t.Tick)
	want("two pushes", backend.Stats{Scheduled: 2})
	if head := t.stats().HeadDue; head.Before(first.Add(10*t.Tick-t.Skew)) || head.After(t.now().Add(10*t.Tick+t.traits.Resolution+t.Skew)) {
		t.fail("Stats returns a head due at %v; want %v", head, first.Add(10*t.Tick))
	}
	t.pass(10*t.Tick + t.traits.Resolution)
	want("one became due", backend.Stats{Scheduled: 1, Ready: 1})
	if head := t.stats().HeadDue; head.Before(first.Add(10*t.Tick-t.Skew)) || head.After(t.now().Add(t.Skew)) {
		t.fail("Stats returns a head due at %v, and the head is due already", head)
	}
	d := t.take()
	want("one was taken", backend.Stats{Scheduled: 1, InFlight: 1})
	t.must(t.deadLetter(d, "of the check"), "Dead")
	want("it died", backend.Stats{Scheduled: 1, Dead: 1})
	t.pass(10*t.Tick + t.traits.Resolution)
	t.takeFor(t.Tick)
	t.outlast(t.Tick)
	want("the other's lease ended", backend.Stats{Ready: 1, Dead: 1})
	t.ack(t.take())
	want("it is done", backend.Stats{Dead: 1})
}

// statsKnown gives a store time to count, as one that does not confirm acks needs.
func statsKnown(t *testRun) {
	all := t.has(backend.CountingScheduled)
	want := func(step string, ready, held, dead int64) {
		t.eventually(0, step+" in Stats", func() bool {
			s := t.stats()
			if !all && (s.Scheduled != backend.Unknown || !s.HeadDue.IsZero() || s.OldestReady != backend.Unknown || s.Due[0] != backend.Unknown) {
				t.fail("Stats returns %s, and the backend declares that it cannot count scheduled messages", statsText(s))
			}
			if all && min(s.Scheduled, s.Ready, s.InFlight, s.Dead, s.Due[0]) < 0 {
				t.fail("Stats returns %s, and the backend declares that it counts all", statsText(s))
			}
			if counted := min(s.Activity.Pushed, s.Activity.Acked) >= 0; counted != t.has(backend.CountingActivity) {
				t.fail("Stats returns that %d were pushed and %d acked, and the backend declares otherwise whether it counts them", s.Activity.Pushed, s.Activity.Acked)
			}
			return s.Ready == ready && s.Dead == dead && (s.InFlight == held || !all && s.InFlight == backend.Unknown)
		})
	}
	want("an empty queue", 0, 0, 0)
	for range 3 {
		t.pushAfter(0)
	}
	want("three ready messages", 3, 0, 0)
	d := t.takeFor(t.lease())
	want("one in flight", 2, 1, 0)
	if t.has(backend.Redriving) {
		t.must(t.deadLetter(d, "of the check"), "Dead")
		want("a dead letter", 2, 0, 1)
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{t.letters()[0].ID})), "DeleteDead")
	} else {
		t.ack(d)
	}
	t.ack(t.takeAll(2, 2)...)
	want("that all are done", 0, 0, 0)
}

// statsDue pushes a message for each interval, two for the first, and one that has been due for an
// hour. As time passes, messages move to nearer intervals.
func statsDue(t *testRun) {
	waits := []time.Duration{30 * time.Second, 50 * time.Second}
	last := time.Duration(0)
	for _, bound := range backend.DueBounds()[1:] {
		last = bound / 2
		waits = append(waits, last)
	}
	for _, wait := range append(waits, 10*last) {
		t.pushAfter(wait)
	}
	want := func(step string, w backend.DueHistogram) {
		if s := t.stats(); s.Due != w || s.DueEstimated {
			t.fail("%s Stats returns %s; due are %v", step, statsText(s), w)
		}
	}
	want("after eight pushes", backend.DueHistogram{2, 1, 1, 1, 1, 1, 1})
	if age := t.stats().OldestReady; age != 0 {
		t.fail("Stats returns that a message has been ready for %v, and none is", age)
	}
	pushed := t.now()
	t.push(t.at(pushed.Add(-time.Hour)))
	t.pushAfter(0)
	t.eventually(0, "both messages to be ready", func() bool { return t.stats().Ready == 2 })
	least, most := time.Hour-t.traits.Resolution-t.Skew, time.Hour+t.traits.Resolution+t.Skew
	if age := t.stats().OldestReady; age < least || age > most+t.now().Sub(pushed) {
		t.fail("Stats returns that the oldest message has been ready for %v; it was due an hour ago", age)
	}
	want("with two messages ready", backend.DueHistogram{2, 1, 1, 1, 1, 1, 1})
	if t.fake != nil {
		t.pass(40 * time.Second)
		want("40 s later", backend.DueHistogram{1, 1, 1, 1, 1, 1, 1})
		t.pass(4 * time.Minute)
		want("4 minutes later", backend.DueHistogram{1, 0, 1, 1, 1, 1, 1})
	}
}

// statsActivity has two handles push and ack, makes calls that do not count, and closes one handle.
func statsActivity(t *testRun) {
	late := slices.Index(backend.LatenessBounds(), 10*time.Minute) // more than a minute
	want := func(when string, pushed, acked, came, cameLate int64) {
		t.eventually(0, fmt.Sprintf("%d pushes, %d acks and %d first hand-outs, %d of them late, in Stats %s", pushed, acked, came, cameLate, when), func() bool {
			a := t.stats().Activity
			if a.Pushed > pushed || a.Acked > acked || sum(a.Lateness[:]) > came || a.Lateness[late] > cameLate {
				t.fail("%s Stats returns %+v; want %d pushed, %d acked, %d that came, and %d by 1 to 10 minutes too late", when, a, pushed, acked, came, cameLate)
			}
			return a.Pushed == pushed && a.Acked == acked && sum(a.Lateness[:]) == came && a.Lateness[late] == cameLate
		})
	}
	want("before the first", 0, 0, 0, 0)
	ms := []backend.Message{t.at(t.now().Add(-3 * time.Minute)), t.after(0), t.after(0)}
	t.push(ms...)
	if refusal := t.refusal(); refusal != nil {
		t.want(outcome(t.q.Schedule(t.ctx, []backend.Message{t.rejected(ms[0])})), refusal, "scheduling a rejected message")
	}
	other := t.second()
	t.push(t.after(0))
	ds := t.takeAll(4, 4)
	t.nack(ds[3], 0)
	t.ack(ds[:2]...)
	t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{ds[0].Lease()})), backend.ErrLeaseLost, "a second ack")
	t.pass(time.Second)
	want("after a second", 4, 2, 4, 1)
	last := t.after(0)
	t.expect(last)
	t.must(outcome(other.Schedule(t.ctx, []backend.Message{last})), "Schedule by another handle")
	t.must(other.Close(), "Close")
	want("after the Close of a handle", 5, 2, 4, 1)
	t.ack(append(t.takeAll(2, 2), ds[2])...)
	t.pass(time.Second)
	want("at the end", 5, 5, 5, 1)
	pushed, acked, came := t.fewCount()
	t.pass(time.Second)
	want("after calls of which few count", 5+pushed, 5+acked, 5+came, 1)
	t.countsLateness()
}

// fewCount makes calls of every kind, and returns how many messages they have pushed, acknowledged
// and received for the first time, or anew.
func (t *testRun) fewCount() (pushed, acked, came int64) {
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(t.pushAfter(1000*t.Tick)), "Cancel")
		pushed++
	}
	id := t.pushAfter(0)
	t.untouched(t.takeID(id))
	d := t.takeID(id)
	if t.has(backend.Rescheduling) {
		t.nack(d, 1000*t.Tick)
		t.expectAgain(id, t.now())
		t.must(t.move(id, 0), "Reschedule")
		d = t.takeID(id)
	}
	pushed, came = pushed+1, came+2
	if t.has(backend.Redriving) {
		t.must(t.deadLetter(d, "of the check"), "Dead")
		t.redrive(id)
		t.must(t.deadLetter(t.takeID(id), "again"), "Dead")
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{id})), "DeleteDead")
		came++
	} else {
		t.ack(d)
		acked++
	}
	if t.has(backend.Replacing) {
		id = t.pushAfter(1000 * t.Tick)
		t.replace(id, 0, "waits")
		t.ack(t.takeID(id))
		pushed, acked, came = pushed+2, acked+1, came+1
	}
	if t.has(backend.ReplacingInFlight) {
		d = t.takeNew(t.lease())
		due := t.replaceHeld(d.ID, 0)
		t.must(outcome(t.q.Ack(t.ctx, []backend.Lease{d.Lease()})), "acknowledging a message that was replaced")
		t.expectAgain(d.ID, due)
		t.ack(t.takeID(d.ID))
		pushed, acked, came = pushed+2, acked+2, came+2
	}
	return pushed, acked, came
}

// countsLateness has messages come exactly as late as each bound, and later by the least.
func (t *testRun) countsLateness() {
	if t.fake == nil || t.lag() > 0 {
		return
	}
	want := t.stats().Activity.Lateness
	for _, bound := range append(backend.LatenessBounds(), 0) {
		for _, late := range []time.Duration{bound, bound + 1} {
			t.push(t.at(t.now().Add(-late)))
			t.ack(t.take())
			want.Add(late)
		}
	}
	t.pass(time.Second)
	t.eventually(0, fmt.Sprintf("the lateness %v in Stats", want), func() bool { return t.stats().Activity.Lateness == want })
}

func countsOf(s backend.Stats) string {
	return fmt.Sprintf("%d scheduled, %d ready, %d in flight, %d dead", s.Scheduled, s.Ready, s.InFlight, s.Dead)
}

func statsText(s backend.Stats) string {
	return fmt.Sprintf("%s, head due at %v, oldest ready for %v, %v by due time", countsOf(s), s.HeadDue, s.OldestReady, s.Due)
}

func sum(counts []int64) (n int64) {
	for _, count := range counts {
		n += count
	}
	return n
}
