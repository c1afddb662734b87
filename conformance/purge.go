package conformance

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 14, at one stroke.
var purgeChecks = []Check{
	{
		Name: "purge", Invariant: 14, needs: []need{purging},
		Rule: "Purge deletes the messages of every state and says how many; leases in force are lost, ids are free, nothing is left in the store.",
		run:  purge,
	},
	{
		Name: "purge-goes-on", Invariant: 14, needs: []need{purging},
		Rule: "After a purge the queue works as one that was never used, for every client and for who was waiting.",
		run:  purgeGoesOn,
	},
}

func purge(t *trial) {
	var ids []string
	for i := range 5 {
		ids = append(ids, t.pushAfter(time.Duration(max(i-2, 0))*t.Tick)) // three are due
	}
	held := t.takeID(ids[0])
	t.must(t.bury(t.takeID(ids[1]), "of the check"), "Dead")
	if windows.met(t) && ownIDs.met(t) {
		m := t.afterUnique(t.Tick, t.lease())
		t.push(m)
		ids = append(ids, m.ID)
	}
	t.purges(ids)
	t.want(outcome(t.q.Ack(t.ctx, []backend.Lease{held.Lease()})), backend.ErrLeaseLost, "acknowledging what was in flight")
	t.nothing("it was purged")
	t.empty()
	t.pass(5*t.Tick + t.lag())
	t.nothing("it was purged")
	t.purges(nil)
}

// purges empties the queue of these messages and of no others.
func (t *trial) purges(ids []string) {
	for _, id := range ids {
		t.expectNoMore(id, "purged")
	}
	p, _ := purger(t.q)
	n, err := p.Purge(t.ctx)
	t.must(err, "Purge")
	if n != int64(len(ids)) {
		t.fail("Purge says that it deleted %d messages; there were %d", n, len(ids))
	}
}

func purgeGoesOn(t *trial) {
	other := t.second()
	far := t.pushAfter(20 * t.Tick)
	s := t.sleep(t.q)
	t.purges([]string{far})
	again := t.after(0)
	if ownIDs.met(t) {
		again.ID = far
	}
	t.expect(again)
	t.must(outcome(other.Schedule(t.ctx, []backend.Message{again})), "pushing on another client after a purge")
	t.grace()
	d := s.woken(again.ID, "a message was pushed after a purge")
	if d.Attempt != 1 {
		t.fail("the first attempt after a purge is %d", d.Attempt)
	}
	t.ack(d)
	t.empty()
}
