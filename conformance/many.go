package conformance

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Numbers beyond 16 bits, where a store may count in fewer bits than it needs. On servers, where
// each call is a round trip, the numbers are small and these checks find less.
var manyChecks = []Check{
	{
		Name: "many-messages", Invariant: 7,
		Rule: "However many messages wait, each is handed out once and in order, also after some of them were cancelled, rescheduled or given back.",
		run:  manyMessages,
	},
	{
		Name: "many-hand-outs", Invariant: 8, needs: []backend.Feature{backend.CountingAttempts, backend.ExactAttempts},
		Rule: "However often a message is handed out, its attempt rises by one each time, and only its last lease settles it.",
		run:  manyHandOuts,
	},
	{
		Name: "many-windows", Invariant: 4, needs: []backend.Feature{backend.UniqueWindows},
		Rule: "However many windows last at the same time, each id stays taken until its own window ends.",
		run:  manyWindows,
	},
}

const (
	beyond16Bits = 1<<16 + 2000
	manyWaiting  = 80_000 // more than 16 bits count are left after the cancels
)

func manyMessages(t *testRun) {
	n := t.scaled(300, manyWaiting)
	due := t.now().Truncate(time.Second).Add(10 * t.Tick)
	dice := rand.New(rand.NewPCG(1, 2))
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.at(due.Add(time.Duration(dice.IntN(5)) * time.Second))
	}
	for batch := range slices.Chunk(ms, delayq.MaxBatch) {
		t.push(batch...)
	}
	ms = t.removeSome(ms, dice)
	ms = t.moveSome(ms, due, dice)
	slices.SortStableFunc(ms, func(a, b backend.Message) int { return a.Due.Compare(b.Due) })
	t.pass(max(0, due.Sub(t.now())) + 6*time.Second + t.lag())
	ids := each(ms, func(m backend.Message) string { return m.ID })
	held := t.takeAllFor(len(ids)/2, delayq.MaxBatch, backend.MaxLease)
	if t.has(backend.Ordering) { // else any half may come first
		t.sameOrder("Receive", ids[:len(held)], each(held, idOf))
	}
	for batch := range slices.Chunk(held, delayq.MaxBatch) {
		t.giveBack(batch)
	}
	t.grace()
	all := t.takeAllFor(len(ids), delayq.MaxBatch, backend.MaxLease)
	t.sameOrder("Receive", ids, each(all, idOf))
	for batch := range slices.Chunk(all, delayq.MaxBatch-1) {
		t.ackBatch(batch)
	}
	t.nothing("all are done")
	if t.has(backend.CountingScheduled) {
		t.empty()
	}
}

// removeSome cancels every seventh message, in batches: a store that walks through all messages for
// each call would take minutes otherwise.
func (t *testRun) removeSome(ms []backend.Message, dice *rand.Rand) []backend.Message {
	if !t.has(backend.CancelNotFound) {
		return ms
	}
	gone := make(map[string]bool)
	for _, i := range dice.Perm(len(ms))[:len(ms)/7] {
		gone[ms[i].ID] = true
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(gone)), delayq.MaxBatch) {
		t.outcomes(t.q.Cancel(t.ctx, ids), len(ids), "cancelling", allWell)
		for _, id := range ids {
			t.expectNoMore(id, "cancelled")
		}
	}
	return slices.DeleteFunc(ms, func(m backend.Message) bool { return gone[m.ID] })
}

// moveSome reschedules every seventh message by some seconds.
func (t *testRun) moveSome(ms []backend.Message, due time.Time, dice *rand.Rand) []backend.Message {
	if !t.has(backend.Rescheduling) {
		return ms
	}
	for some := range slices.Chunk(dice.Perm(len(ms))[:len(ms)/7], delayq.MaxBatch) {
		moves := make([]backend.Move, len(some))
		for k, i := range some {
			ms[i].Due = due.Add(time.Duration(dice.IntN(5)) * time.Second)
			t.expectAgain(ms[i].ID, ms[i].Due.Add(-t.Skew))
			moves[k] = backend.Move{ID: ms[i].ID, Due: ms[i].Due}
		}
		t.outcomes(t.q.Reschedule(t.ctx, moves), len(moves), "rescheduling", allWell)
	}
	return ms
}

func (t *testRun) giveBack(ds []backend.Delivery) {
	rs := each(ds, func(d backend.Delivery) backend.Return { return backend.Return{Lease: d.Lease(), Untouched: true} })
	for _, d := range ds {
		t.expectAgain(d.ID, time.Time{})
	}
	t.outcomes(t.q.Nack(t.ctx, rs), len(rs), "giving back", allWell)
}

func manyHandOuts(t *testRun) {
	id := t.pushAfter(0)
	var leases []backend.Lease
	var last backend.Delivery
	for i := range t.scaled(40, beyond16Bits) {
		if i > 0 {
			t.nack(last, 0)
			t.grace()
		}
		if last = t.takeID(id); last.Attempt != i+1 {
			t.fail("message %s was handed out at attempt %d; it is delivery %d", id, last.Attempt, i+1)
		}
		leases = append(leases, last.Lease())
	}
	lost := func(int) error { return backend.ErrLeaseLost }
	for batch := range slices.Chunk(leases[:len(leases)-1], delayq.MaxBatch) {
		t.outcomes(t.q.Ack(t.ctx, batch), len(batch), "acknowledging under an old lease,", lost)
	}
	t.ack(last)
	t.nothing("it is done")
}

func manyWindows(t *testRun) {
	n := t.scaled(100, delayq.MaxBatch)
	window := t.atLeast(10 * t.lease())
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.afterUnique(0, window+time.Duration(i)*time.Microsecond)
	}
	begun := t.now()
	t.push(ms...)
	t.grace()
	t.ackBatch(t.takeAllFor(n, n, backend.MaxLease))
	t.outcomes(t.q.Schedule(t.ctx, ms), n, "pushing ids whose windows last,", func(int) error { return backend.ErrDuplicate })
	t.nothing("all ids are taken")
	if t.fake == nil {
		return // the windows are too long to wait for
	}
	t.pass(begun.Add(ms[n-1].UniqueFor).Sub(t.now()) + t.traits.Resolution)
	t.push(ms...)
	t.grace()
	t.ackBatch(t.takeAllFor(n, n, backend.MaxLease))
}
