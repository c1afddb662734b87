package conformance

import (
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Invariant 8: redelivery is counted.
var attemptChecks = []Check{
	{
		Name: "attempt-counts-crashes", Invariant: 8, needs: []backend.Feature{backend.CountingAttempts},
		Rule: "Attempt is 1 at first and rises by exactly one when a worker crashes.",
		run: func(t *testRun) {
			t.counts(t.Tick, func(backend.Delivery) { t.outlast(t.Tick) })
		},
	},
	{
		Name: "attempt-counts-nacks", Invariant: 8, needs: []backend.Feature{backend.CountingAttempts},
		Rule: "Attempt rises by exactly one when a message is given back.",
		run:  func(t *testRun) { t.counts(t.lease(), func(d backend.Delivery) { t.nack(d, 0) }) },
	},
	{
		Name: "untouched-is-not-counted", Invariant: 10, needs: []backend.Feature{backend.CountingAttempts},
		Rule: "A message given back untouched is due at once and keeps its attempts.",
		run:  untouchedIsNotCounted,
	},
	{
		Name: "lease-end-wakes", Invariant: 8,
		Rule: "A waiting worker gets a dead worker's message when the lease ends, within the sweep.",
		run:  leaseEndWakes,
	},
}

func (t *testRun) counts(lease time.Duration, giveUp func(backend.Delivery)) {
	id := t.pushAfter(0)
	for want := 1; want <= 4; want++ {
		asked := t.now()
		d := t.takeIDFor(id, lease)
		if t.now().Sub(asked) >= lease { // a hand-out whose reply takes that long counts, and nobody gets it
			want = max(want, d.Attempt)
		}
		if d.Attempt != want {
			t.fail("message %s was handed out at attempt %d; it is delivery %d", id, d.Attempt, want)
		}
		giveUp(d)
	}
}

func untouchedIsNotCounted(t *testRun) {
	id := t.pushAfter(0)
	t.nack(t.takeID(id), 0)
	for range 3 {
		d := t.takeID(id)
		if d.Attempt != 2 {
			t.fail("message %s was handed out at attempt %d; only one worker had touched it", id, d.Attempt)
		}
		t.untouched(d)
	}
	t.ack(t.takeID(id))
	t.released()
}

// released gives messages back through the library's queue, singly and in a batch.
func (t *testRun) released() {
	const n = 5
	for range n {
		t.pushAfter(0)
	}
	q := t.portable(delayq.WithLease(t.longLease()))
	for range 3 {
		var ds []*delayq.Delivery
		for len(ds) < n {
			some, err := q.ReceiveBatch(t.ctx, n-len(ds))
			t.must(err, "ReceiveBatch")
			ds = append(ds, some...)
		}
		t.must(ds[0].Release(t.ctx), "Release")
		t.must(q.ReleaseBatch(t.ctx, ds[1:]), "ReleaseBatch")
	}
	t.must(q.Close(), "Close")
	for _, d := range t.takeAll(n, 3) {
		if d.Attempt != 1 {
			t.fail("message %s was handed out at attempt %d; it was released each time", d.ID, d.Attempt)
		}
		t.ack(d)
	}
}

func leaseEndWakes(t *testRun) {
	q := t.second() // before the lease begins: it may take long
	id := t.pushAfter(0)
	t.takeIDFor(id, 2*t.Tick)
	end := t.now().Add(2 * t.Tick)
	s := t.sleep(q)
	t.pass(end.Sub(t.now()) + t.lag())
	t.ackOn(q, s.woken(id, "the lease ended"))
	if at := s.at; at.After(end.Add(t.late())) {
		t.fail("the message was handed out %v after the lease ended; allowed is %v", at.Sub(end), t.late())
	}
}
