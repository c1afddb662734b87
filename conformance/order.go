package conformance

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 7: order.
var orderChecks = []Check{
	{
		Name: "order", Invariant: 7, ordered: true,
		Rule: "One worker gets messages by due time. In a store without order, one that is due later by more than its Disorder never comes first.",
		run:  order,
	},
	{
		Name: "order-of-ties", Invariant: 7, needs: []backend.Feature{backend.Ordering},
		Rule: "Messages with the same due time are handed out in the order in which they were pushed, singly or in batches.",
		run:  orderOfTies,
	},
	{
		Name: "order-after-lease", Invariant: 7, needs: []backend.Feature{backend.Ordering},
		Rule: "A message whose lease ended, or that was given back untouched, keeps its place in the order.",
		run:  orderAfterLease,
	},
}

func order(t *testRun) {
	if !t.has(backend.Ordering) {
		t.disorder()
		return
	}
	const n = 40
	due := t.now().Add(t.Tick)
	byDue := make([]string, n)
	for i := range n {
		at := i * 17 % n
		m := t.at(due.Add(time.Duration(at) * max(t.traits.Resolution, time.Millisecond)))
		byDue[at] = m.ID
		t.push(m)
	}
	t.pass(due.Sub(t.now()) + n*max(t.traits.Resolution, time.Millisecond) + t.lag())
	t.inOrder(byDue, 1)
}

// disorder takes messages that have been due for a while, some at a time.
func (t *testRun) disorder() {
	for _, limit := range []int{1, 7, 40} {
		const n = 40
		left := make(map[string]time.Time)
		for i := range n {
			m := t.at(t.now().Add(-time.Duration(1+i*17%n) * t.traits.Disorder / 4))
			left[m.ID] = m.Due
			t.push(m)
		}
		for len(left) > 0 {
			ds, err := t.receive(t.q, limit, t.lease())
			t.must(err, "taking %d of %d messages", limit, len(left))
			for _, d := range ds {
				due := left[d.ID]
				delete(left, d.ID)
				for id, first := range left {
					if due.Sub(first) > t.traits.Disorder {
						t.fail("message %s was handed out before %s, which was due %v earlier", d.ID, id, due.Sub(first))
					}
				}
				t.ack(d)
			}
		}
	}
}

// inOrder receives the messages in this order, up to limit in a call.
func (t *testRun) inOrder(ids []string, limit int) {
	for i := 0; i < len(ids); {
		ds, err := t.receive(t.q, limit, t.lease())
		t.must(err, "taking message %d of %d", i+1, len(ids))
		for _, d := range ds {
			if d.ID != ids[i] {
				t.fail("message %s was handed out at place %d; %s was next in the order", d.ID, i+1, ids[i])
			}
			t.ack(d)
			i++
		}
	}
}

func orderOfTies(t *testRun) {
	for _, limit := range []int{1, 7} {
		const n = 50
		due := t.now().Add(t.Tick)
		var ids []string
		var batch []backend.Message
		for i := range n {
			m := t.at(due)
			ids = append(ids, m.ID)
			if batch = append(batch, m); i%5 == 4 {
				t.push(batch...)
				batch = nil
			}
		}
		t.pass(t.Tick + t.lag())
		t.inOrder(ids, limit)
	}
}

func orderAfterLease(t *testRun) {
	due := t.now().Add(t.Tick)
	var ids []string
	for range 3 {
		m := t.at(due)
		ids = append(ids, m.ID)
		t.push(m)
	}
	t.pass(2*t.Tick + t.lag())
	lease := t.Tick + t.noise()
	t.takeIDFor(ids[0], lease)
	t.untouched(t.takeID(ids[1]))
	t.outlast(lease)
	t.inOrder(ids, 1)
}
