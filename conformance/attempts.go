package conformance

import (
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Invariant 8: redelivery is counted.
var attemptChecks = []Check{
	{
		Name: "attempt-counts-crashes", Invariant: 8, needs: []need{attempts},
		Rule: "Attempt is 1 at first and rises by exactly one when a worker dies without a word.",
		run: func(t *trial) {
			t.counts(t.Tick, func(backend.Delivery) { t.outlast(t.Tick) })
		},
	},
	{
		Name: "attempt-counts-nacks", Invariant: 8, needs: []need{attempts},
		Rule: "Attempt rises by exactly one when a message is given back.",
		run:  func(t *trial) { t.counts(t.lease(), func(d backend.Delivery) { t.nack(d, 0) }) },
	},
	{
		Name: "untouched-is-not-counted", Invariant: 10, needs: []need{attempts},
		Rule: "A message given back untouched is due at once and keeps its attempts.",
		run:  untouchedIsNotCounted,
	},
	{
		Name: "lease-end-wakes", Invariant: 8,
		Rule: "A waiting worker gets a dead worker's message when the lease ends, within the sweep.",
		run:  leaseEndWakes,
	},
}

// recounts is how often a store may try that declares RecountsAttempts: what the machine's load adds to an attempt comes once in a while, a
// wrong count each time.
const recounts = 3

// exactly fails with what a scenario finds wrong. A scenario that does leaves the queue empty.
func (t *trial) exactly(scenario func() (wrong string)) {
	wrong := scenario()
	for try := 1; wrong != "" && t.traits.RecountsAttempts && try < recounts; try++ {
		wrong = scenario()
	}
	if wrong != "" {
		t.fail("%s", wrong)
	}
}

func (t *trial) counts(lease time.Duration, giveUp func(backend.Delivery)) {
	t.exactly(func() string {
		id := t.pushAfter(0)
		for want := 1; want <= 4; want++ {
			d := t.takeIDFor(id, lease)
			if d.Attempt != want {
				t.ack(d)
				return fmt.Sprintf("message %s came with attempt %d; it is its hand-out number %d", id, d.Attempt, want)
			}
			giveUp(d)
		}
		return ""
	})
}

func untouchedIsNotCounted(t *trial) {
	t.exactly(func() string {
		id := t.pushAfter(0)
		t.nack(t.takeID(id), 0)
		for range 3 {
			d := t.takeID(id)
			if d.Attempt != 2 {
				t.ack(d)
				return fmt.Sprintf("message %s came with attempt %d; only one worker had touched it", id, d.Attempt)
			}
			t.untouched(d)
		}
		t.ack(t.takeID(id))
		return ""
	})
	t.exactly(t.released)
}

// released gives messages back as users do, one by one and in a batch. Where the store may count more than there were, as it declares, that
// they come again is all that is looked at: several at once, on a handle that is closed then, are counted wrong nearly each time.
func (t *trial) released() (wrong string) {
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
		if d.Attempt != 1 && !t.traits.RecountsAttempts {
			wrong = fmt.Sprintf("message %s came with attempt %d; it was released each time", d.ID, d.Attempt)
		}
		t.ack(d)
	}
	return wrong
}

func leaseEndWakes(t *trial) {
	id := t.pushAfter(0)
	t.takeIDFor(id, 2*t.Tick)
	end := t.now().Add(2 * t.Tick)
	q := t.second()
	s := t.sleep(q)
	t.pass(end.Sub(t.now()) + t.lag())
	t.ackOn(q, s.woken(id, "the lease ended"))
	if at := *s.at.Load(); at.After(end.Add(t.late())) {
		t.fail("the message came %v after the lease ended; allowed is %v", at.Sub(end), t.late())
	}
}
