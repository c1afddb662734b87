package conformance

import (
	"time"

	"github.com/delayq/delayq/backend"
)

var transacting = []backend.Feature{backend.Transactions, backend.Cancelling, backend.Rescheduling, backend.CountingScheduled, backend.OwnIDs}

// Calls inside a transaction of the caller.
var transactionChecks = []Check{
	{
		Name: "transaction", Invariant: 13, needs: transacting, begins: true,
		Rule: "What a transaction has pushed, replaced, moved, cancelled and acknowledged holds from its commit on, and nobody sees it before.",
		run:  transaction,
	},
	{
		Name: "transaction-rollback", Invariant: 13, needs: transacting, begins: true,
		Rule: "A rollback leaves nothing: what was pushed is not there and its id is free, what was replaced, moved or cancelled is as it was, and what was acknowledged is still leased.",
		run:  transactionRollback,
	},
	{
		Name: "transaction-outcomes", Invariant: 13, needs: transacting, begins: true,
		Rule: "ErrDuplicate, ErrInFlight, ErrNotFound and ErrLeaseLost change nothing, and leave the transaction usable; it sees what it has done itself.",
		run:  transactionOutcomes,
	},
	{
		Name: "transaction-lease", Invariant: 5, needs: transacting, begins: true,
		Rule: "A message that a transaction has acknowledged is handed out to nobody before its end, though the lease ends; after a rollback it is handed out again.",
		run:  transactionLease,
	},
	{
		Name: "wake-up-by-commit", Invariant: 12, needs: transacting, begins: true,
		Rule: "A waiting worker of any client gets in time a message that a transaction has pushed, or moved to sooner, when it is committed.",
		run:  wakeUpByCommit,
	},
	{
		Name: "transaction-refused", Invariant: 15, needs: transacting, begins: true,
		Rule: "A transaction of another type, of another store, or that is over gets an InvalidError, each call of a view whose queue is closed ErrClosed, and the transaction is not used; the methods of a view but those for changes return ErrUnsupported.",
		run:  transactionRefused,
	},
}

// An openTx is a transaction with a view of the run's queue.
type openTx struct {
	Transaction
	q backend.Queue
}

// begin begins a transaction, which is rolled back when the run ends.
func (t *testRun) begin() *openTx { return t.beginOn(t.q) }

func (t *testRun) beginOn(q backend.Queue) *openTx {
	tx, err := t.Begin(t.ctx, t.b)
	t.must(err, "beginning a transaction")
	t.later(tx.Rollback)
	view, err := q.InTx(tx.Tx)
	t.must(err, "InTx")
	return &openTx{tx, view}
}

func (t *testRun) commit(tx *openTx) { t.must(tx.Commit(), "committing") }

func (t *testRun) rollback(tx *openTx) { t.must(tx.Rollback(), "rolling back") }

// tally counts the messages that wait and those in flight.
func (t *testRun) tally() [2]int64 {
	s := t.stats()
	return [2]int64{s.Scheduled + s.Ready, s.InFlight}
}

// changes are what a transaction does in transaction and transactionRollback: one of each.
type changes struct {
	pushed, replacement        backend.Message
	moved, cancelled, replaced string
	held                       backend.Delivery
}

// change pushes messages, and changes each in a way of its own in a transaction.
func (t *testRun) change() (changes, *openTx) {
	c := changes{
		moved: t.pushAfter(3 * t.Tick), cancelled: t.pushAfter(3 * t.Tick), replaced: t.pushAfter(3 * t.Tick),
		held: t.takeNew(t.lease()), pushed: t.after(2 * t.Tick),
	}
	before := t.tally()
	in := t.begin()
	t.must(outcome(in.q.Schedule(t.ctx, []backend.Message{c.pushed})), "pushing in a transaction")
	t.must(outcome(in.q.Reschedule(t.ctx, []backend.Move{{ID: c.moved, Delay: t.Tick}})), "rescheduling in a transaction")
	t.must(outcome(in.q.Cancel(t.ctx, []string{c.cancelled})), "cancelling in a transaction")
	if t.has(backend.Replacing) {
		c.replacement = t.after(2 * t.Tick)
		c.replacement.ID, c.replacement.Replace = c.replaced, true
		t.must(outcome(in.q.Schedule(t.ctx, []backend.Message{c.replacement})), "replacing in a transaction")
	}
	t.must(outcome(in.q.Ack(t.ctx, []backend.Lease{c.held.Lease()})), "acknowledging in a transaction")
	if now := t.tally(); now != before {
		t.fail("before the end of a transaction others count %d waiting messages and %d in flight; want %d and %d", now[0], now[1], before[0], before[1])
	}
	return c, in
}

func transaction(t *testRun) {
	c, tx := t.change()
	t.expect(c.pushed)
	t.expectAgain(c.moved, t.now())
	t.expectNoMore(c.cancelled, "cancelled in a transaction")
	t.expectNoMore(c.held.ID, "acknowledged in a transaction")
	if t.has(backend.Replacing) {
		t.expect(c.replacement)
	}
	t.commit(tx)
	if now := t.tally(); now != [2]int64{3, 0} {
		t.fail("after a commit %d messages wait and %d are in flight; want 3 and 0", now[0], now[1])
	}
	t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{c.held.Lease()})), backend.ErrLeaseLost, "acknowledging again")
	t.pass(3*t.Tick + t.lag())
	t.ack(t.takeAll(3, 3)...)
	t.nothing("all are done")
}

func transactionRollback(t *testRun) {
	c, tx := t.change()
	t.rollback(tx)
	if now := t.tally(); now != [2]int64{3, 1} {
		t.fail("after a rollback %d messages wait and %d are in flight; want 3 and 1", now[0], now[1])
	}
	t.ack(c.held)
	t.push(c.pushed) // its id is free
	t.pass(3*t.Tick + t.lag())
	t.ack(t.takeAll(4, 4)...)
	t.nothing("all are done")
}

func transactionOutcomes(t *testRun) {
	waiting, held := t.pushAfter(1000*t.Tick), t.takeNew(t.lease())
	stale := held.Lease()
	stale.Token.Lo++
	tx := t.begin()
	again := t.after(0)
	again.ID = waiting
	t.want(outcome(tx.q.Schedule(t.ctx, []backend.Message{again})), backend.ErrDuplicate, "pushing an id that is taken")
	t.want(outcome(tx.q.Cancel(t.ctx, []string{held.ID})), backend.ErrInFlight, "cancelling a message in flight")
	t.want(outcome(tx.q.Cancel(t.ctx, []string{"unknown"})), backend.ErrNotFound, "cancelling an unknown message")
	t.want(outcome(tx.q.Reschedule(t.ctx, []backend.Move{{ID: held.ID}})), backend.ErrInFlight, "rescheduling a message in flight")
	t.want(outcome(tx.q.Reschedule(t.ctx, []backend.Move{{ID: "unknown"}})), backend.ErrNotFound, "rescheduling an unknown message")
	t.want(outcome(tx.q.Ack(t.ctx, []backend.Lease{stale})), backend.ErrLeaseLost, "acknowledging without the lease")
	fresh := t.after(0)
	errs := tx.q.Schedule(t.ctx, []backend.Message{fresh, again})
	if len(errs) != 2 || errs[0] != nil {
		t.fail("a batch of a new id and one that is taken: %v", errs)
	}
	t.want(errs[1], backend.ErrDuplicate, "pushing a batch")
	t.want(outcome(tx.q.Schedule(t.ctx, []backend.Message{fresh})), backend.ErrDuplicate, "pushing an id that the transaction has pushed")
	t.must(outcome(tx.q.Cancel(t.ctx, []string{waiting})), "cancelling")
	t.want(outcome(tx.q.Cancel(t.ctx, []string{waiting})), backend.ErrNotFound, "cancelling what the transaction has cancelled")
	t.expect(fresh)
	t.commit(tx)
	t.expectNoMore(waiting, "cancelled in a transaction")
	t.grace()
	t.ack(t.takeID(fresh.ID), held)
	t.nothing("all are done")
}

func transactionLease(t *testRun) {
	lease := t.Tick
	if t.fake == nil {
		lease = 10*t.Tick + t.noise() // a busy machine has to acknowledge within it
	}
	d := t.takeNew(lease)
	for attempt := 1; attempt <= 2; attempt++ {
		tx := t.begin()
		t.must(outcome(tx.q.Ack(t.ctx, []backend.Lease{d.Lease()})), "acknowledging in a transaction")
		t.pass(lease + t.lag())
		t.nothing("a transaction that is open has acknowledged it")
		if attempt == 2 {
			t.expectNoMore(d.ID, "acknowledged in a transaction")
			t.commit(tx)
			break
		}
		t.rollback(tx)
		t.expectAgain(d.ID, time.Time{})
		t.grace()
		got := t.takeFor(lease)
		if got.ID != d.ID || got.Attempt != 2 {
			t.fail("after a rollback message %s came at attempt %d; want %s at 2", got.ID, got.Attempt, d.ID)
		}
		d = got
	}
	t.pass(lease + t.lag())
	t.nothing("the transaction is committed")
}

func wakeUpByCommit(t *testRun) {
	far := t.pushAfter(1000 * t.Tick)
	for _, worker := range []backend.Queue{t.q, t.second()} {
		s := t.sleep(worker)
		tx := t.begin()
		near := t.after(0)
		t.expect(near)
		t.must(outcome(tx.q.Schedule(t.ctx, []backend.Message{near})), "pushing in a transaction")
		t.commitFor(tx, s, worker, near.ID)

		s = t.sleep(worker)
		tx = t.begin()
		t.must(outcome(tx.q.Reschedule(t.ctx, []backend.Move{{ID: far}})), "rescheduling in a transaction")
		t.expectAgain(far, time.Time{})
		t.commitFor(tx, s, worker, far)
		far = t.pushAfter(1000 * t.Tick)
	}
	t.must(t.cancelID(far), "cancelling the far message")
	t.nothing("all are done")
}

// commitFor commits a transaction, and wants a message of it to reach a worker in time.
func (t *testRun) commitFor(tx *openTx, s *sleeper, worker backend.Queue, id string) {
	t.moment()
	committed := t.now()
	t.commit(tx)
	t.grace()
	t.ackOn(worker, s.woken(id, "the commit of a transaction"))
	if at := s.at; at.After(committed.Add(t.late())) {
		t.fail("the message was handed out %v after the commit; allowed is %v", at.Sub(committed), t.late())
	}
}

func transactionRefused(t *testRun) {
	for _, wrong := range []any{nil, "a transaction", 7, &struct{}{}} {
		_, err := t.q.InTx(wrong)
		t.want(err, backend.ErrInvalid, "InTx(%T)", wrong)
	}
	over := t.begin()
	t.commit(over)
	t.want(outcome(over.q.Schedule(t.ctx, []backend.Message{t.after(0)})), backend.ErrInvalid, "pushing in a transaction that is over")
	if t.BeginElsewhere != nil {
		t.refusedElsewhere()
	}

	calls, unchanged := t.viewCalls()
	other, err := t.openAsIs(t.b, t.name())
	t.must(err, "opening a second handle")
	tx := t.beginOn(other)
	t.others(tx)
	t.must(other.Close(), "Close")
	for name, call := range calls {
		t.want(outcome(call(tx.q)), backend.ErrClosed, "%s in a transaction, on a closed queue", name)
	}
	_, err = other.InTx(tx.Tx)
	t.want(err, backend.ErrClosed, "InTx of a closed queue")
	t.commit(tx)
	unchanged()
	t.nothing("nothing was pushed")
}

// viewCalls are the calls of a view by name, on messages that wait or are in flight. unchanged makes
// sure that they are as before.
func (t *testRun) viewCalls() (calls map[string]func(backend.Queue) []error, unchanged func()) {
	id := t.pushAfter(1000 * t.Tick)
	held := t.takeNew(t.lease())
	calls = map[string]func(backend.Queue) []error{
		"Schedule":   func(q backend.Queue) []error { return q.Schedule(t.ctx, []backend.Message{t.after(0)}) },
		"Cancel":     func(q backend.Queue) []error { return q.Cancel(t.ctx, []string{id}) },
		"Reschedule": func(q backend.Queue) []error { return q.Reschedule(t.ctx, []backend.Move{{ID: id}}) },
		"Ack":        func(q backend.Queue) []error { return q.Ack(t.ctx, []backend.Lease{held.Lease()}) },
	}
	return calls, func() {
		t.must(t.cancelID(id), "cancelling a message that refused calls had to leave")
		t.ack(held)
	}
}

// refusedElsewhere makes each call in a transaction of another store.
func (t *testRun) refusedElsewhere() {
	calls, unchanged := t.viewCalls()
	for name, call := range calls {
		tx, err := t.BeginElsewhere(t.ctx, t.b)
		t.must(err, "beginning a transaction on another store")
		view, err := t.q.InTx(tx.Tx)
		if err == nil {
			err = outcome(call(view))
		}
		t.want(err, backend.ErrInvalid, "%s in a transaction of another store", name)
		t.must(tx.Commit(), "committing a transaction that was refused")
	}
	unchanged()
}

// others calls the methods of a view that are not for changes.
func (t *testRun) others(tx *openTx) {
	_, err := tx.q.Receive(t.ctx, 1, t.lease())
	t.want(err, backend.ErrUnsupported, "Receive in a transaction")
	t.want(outcome(tx.q.Nack(t.ctx, make([]backend.Return, 1))), backend.ErrUnsupported, "Nack in a transaction")
	_, errs := tx.q.Extend(t.ctx, make([]backend.Lease, 1), t.lease())
	t.want(outcome(errs), backend.ErrUnsupported, "Extend in a transaction")
	t.want(outcome(tx.q.Dead(t.ctx, make([]backend.DeadLetterRequest, 1))), backend.ErrUnsupported, "Dead in a transaction")
	for verb, call := range verbs {
		if verb != "Cancel" && verb != "Reschedule" {
			t.want(outcome(call(t.ctx, tx.q, []string{"unknown"})), backend.ErrUnsupported, "%s in a transaction", verb)
		}
	}
	t.must(tx.q.Close(), "Close of a view")
}
