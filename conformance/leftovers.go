package conformance

import (
	"strings"

	"github.com/delayq/delayq/backend"
)

// Invariant 14: nothing is left behind.
var leftoverChecks = []Check{
	{
		Name: "leaves-nothing", Invariant: 14,
		Rule: "When every message is done, cancelled or deleted, the store holds nothing of the queue; where it cannot see waiting messages, when the cancelled ones have been due and skipped.",
		run:  leavesNothing,
	},
}

func leavesNothing(t *testRun) {
	const n = 12
	for range n {
		t.pushAfter(0)
	}
	for i, d := range t.takeAll(n, 5) {
		switch i % 4 {
		case 0:
			t.ack(d)
		case 1:
			t.nack(d, 0)
		case 2:
			t.untouched(d)
		case 3:
			t.deadLetterAndForget(d)
		}
	}
	t.ack(t.takeAll(n/2, 5)...)
	t.crashAndFinish()
	t.cancelOne()
	t.nothing("all are settled")
	t.empty()
}

func (t *testRun) deadLetterAndForget(d backend.Delivery) {
	if !t.has(backend.Redriving) {
		t.ack(d)
		return
	}
	t.must(t.deadLetter(d, "of the check"), "Dead")
	ls := t.letters()
	t.must(outcome(t.q.DeleteDead(t.ctx, []string{ls[0].ID})), "DeleteDead")
}

func (t *testRun) crashAndFinish() {
	t.pushAfter(0)
	t.takeFor(t.Tick)
	t.pass(t.Tick + t.lag())
	t.ack(t.take())
}

func (t *testRun) cancelOne() {
	if !t.has(backend.Cancelling) {
		return
	}
	t.must(t.cancelID(t.pushAfter(t.Tick)), "Cancel")
	if !t.has(backend.CancelNotFound) {
		t.pass(t.Tick + t.late()) // until the store can skip it
		t.skipCancelled()
	}
}

// skipCancelled has a worker wait until the store has skipped the cancelled message.
func (t *testRun) skipCancelled() {
	if t.Leftovers == nil {
		return
	}
	t.eventually(0, "the end of a cancelled message that is due", func() bool {
		t.nothing("it was cancelled")
		return len(t.left()) == 0
	})
}

// left names what the store still holds, as far as the harness can tell.
func (t *testRun) left() []string {
	if t.Leftovers == nil {
		return nil
	}
	left, err := t.Leftovers(t.ctx, t.b)
	t.must(err, "listing the leftovers")
	return left
}

// empty checks Stats and the leftovers of the store.
func (t *testRun) empty() {
	if t.has(backend.CountingScheduled) {
		if s := t.stats(); s != (backend.Stats{Activity: s.Activity}) {
			t.fail("Stats returns %s, head due at %v; all messages are settled", countsOf(s), s.HeadDue)
		}
	}
	if left := t.left(); len(left) > 0 {
		t.fail("the store still holds %s", strings.Join(left, ", "))
	}
}
