package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 14, for Purge.
var purgeChecks = []Check{
	{
		Name: "purge", Invariant: 14, needs: []backend.Feature{backend.Purging},
		Rule: "Purge deletes the messages of every state and returns their number; leases in force are lost, ids are free, nothing is left in the store.",
		run:  purge,
	},
	{
		Name: "purge-goes-on", Invariant: 14, needs: []backend.Feature{backend.Purging},
		Rule: "After a purge the queue works like a new one, for every client and for workers that were waiting.",
		run:  purgeGoesOn,
	},
	{
		Name: "purge-and-reuse", Invariant: 14, needs: []backend.Feature{backend.Purging},
		Rule: "After each purge, leases from before it settle nothing, though the same ids are pushed and leased again; windows, dead letters and attempts start anew.",
		run:  purgeAndReuse,
	},
	{
		Name: "purge-race", Invariant: 13, needs: []backend.Feature{backend.Purging},
		Rule: "During concurrent pushes, purges and acks, each message is deleted by one purge or acknowledged, never both and never neither.",
		run:  purgeRace,
	},
}

func purge(t *testRun) {
	var ids []string
	for i := range 5 {
		ids = append(ids, t.pushAfter(time.Duration(max(i-2, 0))*t.Tick)) // three are due
	}
	held := t.take()
	t.must(t.deadLetter(t.take(), "of the check"), "Dead")
	if t.has(backend.UniqueWindows) {
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

// purges purges the queue, which must have exactly these messages.
func (t *testRun) purges(ids []string) {
	for _, id := range ids {
		t.expectNoMore(id, "purged")
	}
	n, err := t.q.Purge(t.ctx)
	t.must(err, "Purge")
	if n != int64(len(ids)) {
		t.fail("Purge returns %d; there were %d messages", n, len(ids))
	}
}

func purgeGoesOn(t *testRun) {
	other := t.second()
	far := t.pushAfter(20 * t.Tick)
	s := t.sleep(t.q)
	t.purges([]string{far})
	again := t.after(0)
	if t.has(backend.OwnIDs) {
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

// purgeAndReuse leases messages of the same ids in each round.
func purgeAndReuse(t *testRun) {
	const n = 4
	var old []backend.Delivery
	for range 4 {
		ms := make([]backend.Message, n)
		for i := range ms {
			ms[i] = t.reused(i)
			t.push(ms[i])
		}
		ds := t.takeAll(n, 2)
		for i, d := range ds {
			if d.ID != ms[i].ID && t.has(backend.Ordering) || d.Attempt != 1 && t.has(backend.ExactAttempts) {
				t.fail("after a purge message %s was handed out at attempt %d; want %s at attempt 1", d.ID, d.Attempt, ms[i].ID)
			}
		}
		for _, d := range old {
			t.settlesNothing(d)
		}
		t.keepsWindow()
		for _, d := range ds[n/2:] { // the leases from before have not settled them
			t.must(t.deadLetter(d, "reason of "+d.ID), "Dead")
		}
		if t.has(backend.Redriving) && len(t.letters()) != n/2 {
			t.fail("%d dead letters are listed; there are %d", len(t.letters()), n/2)
		}
		_, err := t.extend(ds[0], t.lease())
		t.must(err, "extending a lease of this round")
		old = append(old, ds...)
		t.purges(each(ms, func(m backend.Message) string { return m.ID }))
		t.nothing("all was purged")
		t.looksEmpty()
		for _, d := range old {
			t.settlesNothing(d)
		}
		t.empty()
	}
}

// reused makes a message with the same id in each round, where the store keeps ids. The first has a
// window, which the purge ends.
func (t *testRun) reused(i int) backend.Message {
	m := t.after(0)
	if !t.has(backend.OwnIDs) {
		return m
	}
	m.ID = fmt.Sprint("reused-", i)
	if i == 0 && t.has(backend.UniqueWindows) {
		m.UniqueFor = t.lease()
	}
	return m
}

func (t *testRun) keepsWindow() {
	if t.has(backend.UniqueWindows) {
		m := backend.Message{ID: "window", UniqueFor: t.lease()}
		t.push(m)
		t.ack(t.takeID(m.ID))
		t.isTaken(t.q, m.ID, "a window was opened after a purge")
	}
}

// settlesNothing tries all settling methods under a lost lease.
func (t *testRun) settlesNothing(d backend.Delivery) {
	for op, settle := range settles {
		t.want(settle(t.ctx, t.q, d.Lease(), t.lease()), backend.ErrLeaseLost, "%s under a lease from before a purge", op)
	}
}

// looksEmpty calls all methods that list messages.
func (t *testRun) looksEmpty() {
	if t.has(backend.Peeking) {
		if ps := t.peekAll(10); len(ps) > 0 {
			t.fail("Peek shows %d messages of a queue that was purged", len(ps))
		}
	}
	if t.has(backend.Redriving) {
		if ls := t.letters(); len(ls) > 0 {
			t.fail("ListDead shows %d messages of a queue that was purged", len(ls))
		}
	}
}

func purgeRace(t *testRun) {
	const pushers, workers = 4, 4
	batches := t.scaled(20, 200)
	taking := t.second()
	var pushed, acked, purged atomic.Int64
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	var left atomic.Int64
	left.Store(pushers)
	push := func(i int) error {
		defer func() {
			if left.Add(-1) == 0 {
				stop()
			}
		}()
		for range batches {
			ms := []backend.Message{t.after(0), t.after(0), t.after(t.Tick)}
			t.expect(ms...)
			if err := errors.Join(t.q.Schedule(t.ctx, ms)...); err != nil {
				return fmt.Errorf("pushing during purges: %w", err)
			}
			pushed.Add(int64(len(ms)))
		}
		return nil
	}
	work := func(int) error {
		return t.work(ctx, taking, func(d backend.Delivery) error {
			err := outcome(taking.Ack(t.ctx, []backend.Lease{d.Lease()}))
			if err == nil {
				acked.Add(1)
				t.expectNoMore(d.ID, "acknowledged")
			} else if !errors.Is(err, backend.ErrLeaseLost) {
				return fmt.Errorf("acknowledging during purges: %w", err)
			}
			return nil
		})
	}
	purgeOnce := func(ctx context.Context) error {
		n, err := t.q.Purge(ctx)
		purged.Add(n)
		return err
	}
	purges := func() error {
		for ctx.Err() == nil {
			if err := purgeOnce(t.ctx); err != nil {
				return fmt.Errorf("purging: %w", err)
			}
			time.Sleep(t.Quiet / 10)
		}
		return nil
	}
	t.all(append(append(spread(pushers, push), spread(workers, work)...), purges)...)
	t.must(taking.Close(), "Close") // it waits for the claim under way, which takes several commands on zsetpoll
	t.must(purgeOnce(t.ctx), "Purge")
	if all := acked.Load() + purged.Load(); all != pushed.Load() {
		t.fail("%d messages were pushed; %d were acknowledged and %d purged", pushed.Load(), acked.Load(), purged.Load())
	}
	t.empty()
}
