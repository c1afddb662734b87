package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 12: no wake-up is lost.
var wakeChecks = []Check{
	{
		Name: "wake-up", Invariant: 12,
		Rule: "A worker that waits for a far message gets a nearer one in time.",
		run:  func(t *testRun) { t.wakes(t.q, t.q) },
	},
	{
		Name: "wake-up-elsewhere", Invariant: 12,
		Rule: "A worker that waits for a far message gets a nearer one that another client pushes, in time.",
		run:  func(t *testRun) { t.wakes(t.q, t.second()) },
	},
	{
		Name: "wake-up-at-once", Invariant: 12,
		Rule: "A worker that waits on an empty queue gets a message that is pushed to be due at once.",
		run:  wakeUpAtOnce,
	},
	{
		Name: "wake-up-by-nack", Invariant: 12,
		Rule: "A waiting worker gets a message that another worker gives back.",
		run:  wakeUpByNack,
	},
	{
		Name: "wake-up-by-reschedule", Invariant: 12, needs: []backend.Feature{backend.Rescheduling},
		Rule: "A waiting worker gets a message that is rescheduled to an earlier time.",
		run:  wakeUpByReschedule,
	},
	{
		Name: "wake-up-by-replace", Invariant: 12, needs: []backend.Feature{backend.Replacing},
		Rule: "A worker that waits for a far message gets its replacement in time, when a push of any client replaces it by a nearer one.",
		run:  wakeUpByReplace,
	},
	{
		Name: "wake-up-of-many", Invariant: 12,
		Rule: "When many messages become due while many workers wait, all messages are handed out.",
		run:  wakeUpOfMany,
	},
	{
		Name: "wake-up-outlives-leavers", Invariant: 12,
		Rule: "A worker that stops waiting does not take another worker's wake-up.",
		run:  wakeUpOutlivesLeavers,
	},
	{
		Name: "wake-up-races", Invariant: 12,
		Rule: "When a worker stops waiting, or its handle closes, at the moment of a push, another waiting worker gets the message, at attempt 1.",
		run:  wakeUpRaces,
	},
	{
		Name: "wake-up-of-batch", Invariant: 12,
		Rule: "A batch wakes as many workers as it has messages, whichever call made its messages due.",
		run:  wakeUpOfBatch,
	},
	{
		Name: "wake-up-by-lease", Invariant: 12,
		Rule: "A worker that waits for a far message gets in time one whose lease is shortened, or ends while others last.",
		run:  wakeUpByLease,
	},
	{
		Name: "wake-up-after-long", Invariant: 12,
		Rule: "A waiting worker gets a message when it is due, however long that takes and however often the head changes meanwhile.",
		run:  wakeUpAfterLong,
	},
}

// wakes has a worker of one client wait, and pushes through the other.
func (t *testRun) wakes(worker, pusher backend.Queue) {
	far := t.pushAfter(1000 * t.Tick)
	s := t.sleep(worker)
	near := t.after(t.Tick)
	t.expect(near)
	t.wakesFor(s, pusher, near, "a nearer message was due")
	if t.has(backend.Cancelling) {
		t.must(outcome(t.q.Cancel(t.ctx, []string{far})), "cancelling the far message")
	}
}

// wakesFor pushes a message that is due in a tick, and wants it to reach a worker in time.
func (t *testRun) wakesFor(s *sleeper, pusher backend.Queue, near backend.Message, why string) {
	due := t.now().Add(t.Tick)
	t.must(outcome(pusher.Schedule(t.ctx, []backend.Message{near})), "scheduling")
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	t.ack(s.woken(near.ID, why))
	if at := s.at; at.After(due.Add(t.late())) {
		t.fail("the nearer message was handed out %v late; allowed is %v", at.Sub(due), t.late())
	}
}

func wakeUpAtOnce(t *testRun) {
	for range 3 {
		s := t.sleep(t.q)
		id := t.pushAfter(0)
		t.grace()
		t.ack(s.woken(id, "a message was pushed"))
	}
}

func wakeUpByNack(t *testRun) {
	id := t.pushAfter(0)
	d := t.takeID(id)
	s := t.sleep(t.q)
	t.nack(d, 0)
	t.grace()
	d = s.woken(id, "the message was given back")
	s = t.sleep(t.q)
	t.nack(d, t.Tick)
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	d = s.woken(id, "the message was given back with a delay")
	s = t.sleep(t.q)
	t.untouched(d)
	t.grace()
	t.ack(s.woken(id, "the message was given back untouched"))
}

func wakeUpByReschedule(t *testRun) {
	id := t.pushAfter(1000 * t.Tick)
	s := t.sleep(t.q)
	t.expectAgain(id, t.now().Add(t.Tick))
	t.must(t.move(id, t.Tick), "rescheduling")
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	t.ack(s.woken(id, "the message was rescheduled to sooner"))
}

func wakeUpByReplace(t *testRun) {
	for _, pusher := range []backend.Queue{t.q, t.second()} {
		id := t.pushAfter(1000 * t.Tick)
		s := t.sleep(t.q)
		near := t.replacing(id, t.Tick)
		t.expect(near)
		t.wakesFor(s, pusher, near, "it was replaced by a nearer one")
	}
}

func wakeUpOfMany(t *testRun) {
	const n = 20
	sleepers := make([]*sleeper, n)
	for i := range sleepers {
		sleepers[i] = t.sleep(t.q)
	}
	for range n {
		t.pushAfter(t.Tick)
	}
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	seen := make(map[string]bool)
	for _, s := range sleepers {
		d := s.wokenBy("many messages were due")
		if seen[d.ID] {
			t.fail("message %s was handed out twice", d.ID)
		}
		seen[d.ID] = true
		t.ack(d)
	}
}

func wakeUpOutlivesLeavers(t *testRun) {
	const n = 10
	for range n {
		leaver, stayer := t.sleep(t.q), t.sleep(t.q)
		id := t.pushAfter(0)
		ds, err := leaver.stop()
		t.firstAttempt(ds...)
		t.grace()
		if err == nil {
			t.ack(ds...)
			_, err := stayer.stop()
			t.want(err, context.Canceled, "Receive whose context ended")
			continue
		}
		d := stayer.woken(id, "the worker that was woken first had left")
		t.firstAttempt(d)
		t.ack(d)
	}
	for _, leave := range []func(*sleeper){func(w *sleeper) { w.cancel() }, func(w *sleeper) { t.must(w.q.Close(), "Close") }} {
		t.outlivesLeaver(leave)
	}
	t.outliveSomeLeavers()
}

// outliveSomeLeavers has workers leave from the middle of the waiting ones, neighbours one after
// another in both directions.
func (t *testRun) outliveSomeLeavers() {
	rounds := [][]int{{1, 2}, {2, 1}, {0, 1}, {4, 3}, {1, 3, 2}}
	for _, leavers := range rounds[:t.scaled(1, len(rounds))] {
		workers := make([]*sleeper, 5)
		for i := range workers {
			workers[i] = t.asleep(t.q)
			t.moment()
		}
		for _, i := range leavers {
			ds, err := workers[i].stop()
			t.want(err, context.Canceled, "Receive whose context ended, with %d messages", len(ds))
			workers[i] = nil
		}
		for range len(workers) - len(leavers) {
			t.pushAfter(0)
		}
		t.grace()
		for _, w := range workers {
			if w != nil {
				t.ack(w.wokenBy("a message for each worker that waits was pushed, and others had left"))
			}
		}
	}
}

// outlivesLeaver has the message become due when one of two waiting workers has left.
func (t *testRun) outlivesLeaver(leave func(*sleeper)) {
	id := t.pushAfter(t.Tick)
	due := t.now().Add(t.Tick)
	stayer := t.sleep(t.q)
	leaver := t.waits(t.b)
	defer leaver.cancel()
	t.settleDown()
	leave(leaver)
	if left := t.resultOf(leaver); len(left.ds) > 0 { // the machine stood still for a tick
		defer stayer.cancel()
		if !t.acksAs(leaver, left) {
			t.expectAgain(id, time.Time{})
			t.ack(stayer.woken(id, "the handle that had the message was closed"))
		}
		return
	}
	t.pass(max(0, due.Sub(t.now())))
	t.grace()
	d := stayer.woken(id, "the message was due, and another worker had left")
	t.firstAttempt(d)
	t.ack(d)
	t.must(leaver.q.Close(), "Close")
}

// firstAttempt fails unless the deliveries are the first of their messages.
func (t *testRun) firstAttempt(ds ...backend.Delivery) {
	for _, d := range ds {
		if d.Attempt != 1 && t.has(backend.ExactAttempts) {
			t.fail("message %s was handed out at attempt %d; no other worker has had it", d.ID, d.Attempt)
		}
	}
}

// waits starts a Receive on a new handle.
func (t *testRun) waits(b backend.Backend) *sleeper {
	q, err := t.openOn(b, t.name())
	t.must(err, "opening a handle")
	return t.asleep(q)
}

// wakeUpRaces has one of two workers leave while a message is pushed. The store may wake either.
func wakeUpRaces(t *testRun) {
	rounds := t.scaled(8, 300)
	if t.traits.Sweep > 0 { // each may take as long
		rounds = 8
	}
	for i := range rounds {
		leaver, stayer := t.waits(t.b), t.waits(t.b)
		if i%2 == 1 {
			leaver, stayer = stayer, leaver
		}
		if i < 8 {
			t.moment()
		}
		m := t.after(0)
		t.expect(m)
		leave := func() error { leaver.cancel(); return nil }
		if i%4 < 2 {
			leave = leaver.q.Close
		}
		push := func() error { return outcome(t.q.Schedule(t.ctx, []backend.Message{m})) }
		if i%3 == 0 { // on a busy machine this order too is a race
			t.all(push)
			t.all(leave)
		} else {
			t.all(push, leave)
		}
		t.grace()
		t.oneOfTwo(leaver, stayer, m.ID)
	}
	t.nothing("all are done")
}

// oneOfTwo waits until one of the two has the message, and settles it. The leaver may have received
// it before it left.
func (t *testRun) oneOfTwo(leaver, stayer *sleeper, id string) {
	defer stayer.cancel()
	defer leaver.cancel()
	left := t.resultOf(leaver)
	switch {
	case len(left.ds) > 0:
		t.firstAttempt(left.ds...)
		if t.acksAs(leaver, left) {
			break
		}
		t.expectAgain(id, time.Time{})
		t.acksAs(stayer, t.resultOf(stayer))
	case !errors.Is(left.err, context.Canceled) && !errors.Is(left.err, backend.ErrClosed):
		t.fail("Receive of a worker that leaves: %v", left.err)
	default:
		r := t.resultOf(stayer)
		t.firstAttempt(r.ds...)
		t.acksAs(stayer, r)
	}
	t.must(stayer.q.Close(), "Close")
	t.must(leaver.q.Close(), "Close")
}

func (t *testRun) resultOf(s *sleeper) result { return s.result("a message was due, or it was ended") }

// acksAs acknowledges a worker's message, through another handle where its own is closed. It
// reports false where the message went back to the queue when the handle closed.
func (t *testRun) acksAs(w *sleeper, r result) bool {
	t.must(r.err, "receiving")
	t.must(t.taken(r.ds[0]), "receiving")
	lease := []backend.Lease{r.ds[0].Lease()}
	err := outcome(w.q.Ack(t.ctx, lease))
	if errors.Is(err, backend.ErrClosed) {
		if t.traits.Leases == backend.InConnection {
			return false
		}
		err = outcome(t.q.Ack(t.ctx, lease))
	}
	t.must(err, "acknowledging")
	t.expectNoMore(r.ds[0].ID, "acknowledged")
	return true
}

func wakeUpOfBatch(t *testRun) {
	const n = 12
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.after(0)
	}
	ids := each(ms, func(m backend.Message) string { return m.ID })
	t.push(t.after(1000 * t.Tick))
	ds := t.wakesAll(n, "a batch was pushed", func() { t.push(ms...) })
	again := func(how string, do func() []error) {
		for _, id := range ids {
			t.expectAgain(id, time.Time{})
		}
		ds = t.wakesAll(n, how, func() { t.must(errors.Join(do()...), "%s", how) })
	}
	back := func(r backend.Return) func() []error {
		return func() []error {
			return t.q.Nack(t.ctx, each(ds, func(d backend.Delivery) backend.Return { r.Lease = d.Lease(); return r }))
		}
	}
	again("a batch was given back", back(backend.Return{}))
	again("a batch was given back untouched", back(backend.Return{Untouched: true}))
	if t.has(backend.Redriving) {
		bs := each(ds, func(d backend.Delivery) backend.DeadLetterRequest { return backend.DeadLetterRequest{Lease: d.Lease()} })
		t.must(errors.Join(t.q.Dead(t.ctx, bs)...), "Dead")
		again("a batch was redriven", func() []error { return t.q.Redrive(t.ctx, ids) })
	}
	if t.has(backend.Rescheduling) {
		t.must(errors.Join(back(backend.Return{Delay: 1000 * t.Tick})()...), "Nack")
		again("a batch was rescheduled", func() []error {
			return t.q.Reschedule(t.ctx, each(ids, func(id string) backend.Move { return backend.Move{ID: id} }))
		})
	}
	t.ack(ds...)
}

// wakesAll has n workers wait, each of which must get one message.
func (t *testRun) wakesAll(n int, how string, do func()) (ds []backend.Delivery) {
	sleepers := make([]*sleeper, n)
	for i := range sleepers {
		sleepers[i] = t.asleep(t.q)
	}
	t.settleDown()
	do()
	t.grace()
	seen := make(map[string]bool)
	for _, s := range sleepers {
		d := s.wokenBy(how)
		if seen[d.ID] {
			t.fail("message %s was handed out twice", d.ID)
		}
		seen[d.ID] = true
		ds = append(ds, d)
	}
	return ds
}

func wakeUpByLease(t *testRun) {
	far := t.pushAfter(1000 * t.Tick)
	for range 3 {
		t.pushAfter(0)
	}
	lease := 20*t.Tick + 10*t.late()
	ds := t.takeAll(3, 3)
	for _, d := range ds {
		_, err := t.extend(d, lease)
		t.must(err, "extending")
	}
	s := t.sleep(t.q)
	_, err := t.extend(ds[1], 2*t.Tick)
	t.must(err, "shortening a lease")
	end := t.now().Add(2 * t.Tick)
	t.settleDown()
	t.pass(max(0, end.Sub(t.now())) + t.lag())
	d := s.woken(ds[1].ID, "the lease was made to end sooner")
	if at := s.at; at.After(end.Add(t.late())) {
		t.fail("the message was handed out %v after the lease ended; allowed is %v", at.Sub(end), t.late())
	}
	t.ack(d, ds[0], ds[2])
	if t.has(backend.Cancelling) {
		t.must(t.cancelID(far), "cancelling")
	}
}

// wakeUpAfterLong changes the head repeatedly while a worker waits. In real time the delays are
// shorter.
func wakeUpAfterLong(t *testRun) {
	unit := 3 * t.Tick
	if t.fake != nil {
		unit = year
	}
	long := 2 * unit
	if t.has(backend.Rescheduling) {
		unit += t.noise() // a busy machine has to move the head twice within it
		long = 10 * unit
	}
	last := t.after(long)
	t.push(last)
	s := t.sleep(t.q)
	var gone []string
	if t.has(backend.CancelNotFound) {
		for i := range 5 {
			gone = append(gone, t.pushAfter(long-time.Duration(i+1)*long/20)) // late enough for a busy machine to cancel them first
		}
	}
	for _, id := range gone {
		t.must(t.cancelID(id), "cancelling the head")
	}
	if t.has(backend.Rescheduling) {
		t.expectAgain(last.ID, t.now().Add(2*unit))
		t.must(t.move(last.ID, unit), "rescheduling to sooner")
		t.settleDown()
		t.must(t.move(last.ID, 2*unit), "rescheduling to later")
		t.pass(unit)
		t.settleDown()
		t.pass(unit)
	} else {
		t.pass(unit)
		t.settleDown()
		t.pass(unit)
	}
	t.grace()
	t.ack(s.woken(last.ID, "it was due after a long time"))
}
