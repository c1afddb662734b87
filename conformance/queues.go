package conformance

import (
	"slices"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

// Invariant 13: each message is in one place, and so is its queue's name.
var queuesChecks = []Check{
	{
		Name: "lists-queues", Invariant: 13, lister: true,
		Rule: "Where the backend lists queues, the list has each queue that holds messages once, in every process, also when no handle is open on it, and none that was never opened.",
		run:  listsQueues,
	},
}

func listsQueues(t *testRun) {
	other := t.name() + ".closed"
	q, err := t.openOn(t.b, other)
	t.must(err, "opening a second queue")
	m := t.after(1000 * t.Tick)
	t.must(outcome(q.Schedule(t.ctx, []backend.Message{m})), "pushing to the second queue")
	t.must(q.Close(), "closing the second queue")
	t.pushAfter(1000 * t.Tick)
	lists := []admin.Lister{t.b.(admin.Lister)}
	if second, ok := t.attach().(admin.Lister); ok {
		lists = append(lists, second)
	}
	for _, l := range lists {
		var names []string
		t.eventually(0, "the names of both queues in the list", func() bool {
			names, err = l.Queues(t.ctx)
			t.must(err, "Queues")
			return slices.Contains(names, t.name()) && slices.Contains(names, other)
		})
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) < len(names) {
			t.fail("Queues returns %q, which is not sorted or has a name twice", names)
		}
		if slices.Contains(names, t.name()+".never") {
			t.fail("Queues returns a queue that nobody has opened: %q", names)
		}
	}
}
