package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 4: no duplicates without a cause.
var duplicateChecks = []Check{
	{
		Name: "exactly-one-worker", Invariant: 4,
		Rule: "Without a fault, each message is handed to exactly one of many workers, on one client or on several.",
		run:  exactlyOneWorker,
	},
	{
		Name: "done-is-done", Invariant: 4,
		Rule: "An acknowledged message is never handed out again, also after its lease would have ended.",
		run:  doneIsDone,
	},
	{
		Name: "same-id", Invariant: 4, needs: []backend.Feature{backend.Deduplicating, backend.OwnIDs},
		Rule: "While a message is scheduled, in flight or dead, a second push of its id returns ErrDuplicate and the first message stays; when it is done the id is free.",
		run:  sameID,
	},
}

func exactlyOneWorker(t *testRun) {
	const n, workers = 400, 8
	t.record()
	for range n / 4 {
		t.push(t.after(0), t.after(0), t.after(t.Tick/4), t.after(t.Tick/2))
	}
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	var done atomic.Int64
	queues := []backend.Queue{t.q, t.second()}
	work := spread(workers, func(i int) error {
		return t.work(ctx, queues[i%len(queues)], func(d backend.Delivery) error {
			if err := outcome(queues[i%len(queues)].Ack(t.ctx, []backend.Lease{d.Lease()})); err != nil {
				return fmt.Errorf("acknowledging message %s: %w", d.ID, err)
			}
			t.expectNoMore(d.ID, "acknowledged")
			if done.Add(1) == n {
				stop()
			}
			return nil
		})
	})
	work = append(work, func() error {
		defer stop()
		return t.letPass(ctx, n)
	})
	t.all(work...)
	t.nothing("all are done")
	t.judged("lost", "duplicated", "linearizable")
}

// work takes and handles messages until ctx ends or one fails.
func (t *testRun) work(ctx context.Context, q backend.Queue, handle func(backend.Delivery) error) error {
	return t.workInBatches(ctx, q, 5, func(ds []backend.Delivery) error {
		for _, d := range ds {
			if err := handle(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// letPass passes a tick, in steps, while workers work, and waits until ctx ends. It passes no more:
// on the fake clock a worker's lease would end.
func (t *testRun) letPass(ctx context.Context, want int) error {
	for range 4 {
		t.settleDown()
		t.pass(t.Tick / 4)
	}
	t.grace()
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(t.Patience):
		return fmt.Errorf("the workers did not receive all %d messages within %v", want, t.Patience)
	}
}

func doneIsDone(t *testRun) {
	const n = 5
	for range n {
		t.pushAfter(0)
	}
	lease := t.Tick + t.noise()
	for range n {
		t.ack(t.takeFor(lease))
	}
	t.nothing("all are done")
	t.pass(lease + t.lag())
	t.nothing("all are done, and their leases would have ended")
}

func sameID(t *testRun) {
	m := t.after(t.Tick)
	t.push(m)
	again := func(state string) {
		second := backend.Message{ID: m.ID, Body: []byte("second"), Delay: 0}
		t.want(outcome(t.q.Schedule(t.ctx, []backend.Message{second})), backend.ErrDuplicate, "pushing the id of a message that is %s", state)
	}
	again("scheduled")
	t.nothing("the first message stays, and is not due")
	t.pass(t.Tick + t.lag())
	d := t.takeID(m.ID)
	again("in flight")
	t.must(t.deadLetter(d, "of the check"), "Dead")
	again("dead")
	t.nothing("it is dead")
	if t.has(backend.Redriving) {
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{m.ID})), "deleting the dead letter")
		for _, body := range []string{"after the deletion", "after the ack"} {
			t.push(backend.Message{ID: m.ID, Body: []byte(body)})
			t.ack(t.takeID(m.ID))
		}
	}
}
