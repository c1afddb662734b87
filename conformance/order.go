package conformance

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 7: order.
var orderChecks = []Check{
	{
		Name: "order", Invariant: 7, needs: []need{ordering},
		Rule: "One consumer that takes one message at a time gets them by due time.",
		run:  order,
	},
	{
		Name: "order-of-ties", Invariant: 7, needs: []need{ordering},
		Rule: "Messages with the same due time come in the order in which they were pushed, taken singly or in batches.",
		run:  orderOfTies,
	},
	{
		Name: "order-after-lease", Invariant: 7, needs: []need{ordering},
		Rule: "A message whose lease ended, or that was given back untouched, is at its old place in the order.",
		run:  orderAfterLease,
	},
	{
		Name: "order-after-many-leases", Invariant: 7, needs: []need{ordering},
		Rule: "However many leases end together, what they held comes in its old order.",
		run:  orderAfterManyLeases,
	},
}

func order(t *trial) {
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

// inOrder takes the messages in this order, up to limit at once.
func (t *trial) inOrder(ids []string, limit int) {
	for i := 0; i < len(ids); {
		ds, err := t.receive(t.q, limit, t.lease())
		t.must(err, "taking message %d of %d", i+1, len(ids))
		for _, d := range ds {
			if d.ID != ids[i] {
				t.fail("message %s came at place %d; %s was next in the order", d.ID, i+1, ids[i])
			}
			t.ack(d)
			i++
		}
	}
}

func orderOfTies(t *trial) {
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

func orderAfterLease(t *trial) {
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

func orderAfterManyLeases(t *trial) {
	const n = 330
	due := t.now().Add(t.Tick)
	var ms []backend.Message
	var ids []string
	for i := range n {
		m := t.at(due.Add(time.Duration(i) * max(t.traits.Resolution, time.Millisecond)))
		ms, ids = append(ms, m), append(ids, m.ID)
	}
	t.push(ms...)
	t.pass(t.Tick + n*max(t.traits.Resolution, time.Millisecond) + t.lag())
	t.leaseMany(n/3, 2*t.lease()) // what comes first in the order ends last
	t.leaseMany(n-n/3, t.lease())
	t.pass(2*t.lease() + t.lag())
	t.inOrder(ids, 1)
}

// leaseMany takes n messages and settles none.
func (t *trial) leaseMany(n int, lease time.Duration) {
	for n > 0 {
		ds, err := t.receive(t.q, n, lease)
		t.must(err, "taking %d messages", n)
		n -= len(ds)
	}
}
