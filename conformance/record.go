package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// record keeps the calls on the queue, and on handles that are opened from now on, for judged.
func (t *testRun) record() {
	t.log = new(judge.Log)
	t.pass(0) // so that the history begins with the time of the fake clock
	t.q = &recorded{t.q, t.log}
}

// judged fails when the recorded calls break one of the rules of package judge. It takes the store
// for one without faults, which hands out no copies.
func (t *testRun) judged(rules ...string) {
	h := &judge.History{
		Backend: t.traits.Name, Traits: backend.Traits{Resolution: t.traits.Resolution, Sweep: t.traits.Sweep},
		Calls: t.log.Calls(), ClockJumps: t.jumps, ClockSkew: int64(t.Skew), Drained: true,
	}
	if v := judge.Check(h, rules...); len(v.Violations) > 0 {
		t.fail("%s", judge.Explain(h, v, 1))
	}
}

// recorded is a queue whose calls are kept.
type recorded struct {
	backend.Queue
	log *judge.Log
}

// record makes a call on items and keeps it. It is kept as refused with any definite error but
// ErrNotFound, which tells where a message is not: other checks are about the right one.
func record[T any](q *recorded, op judge.Op, args []T, item func(T) judge.Item, do func() []error) []error {
	c := judge.Call{Op: op, Items: each(args, item), Start: time.Now().UnixNano()}
	errs := do()
	c.End = time.Now().UnixNano()
	_ = c.SetOutcomes(errs)
	for i := range c.Items {
		if c.Items[i].Out > judge.OK && c.Items[i].Out != judge.NotFound {
			c.Items[i].Out = judge.Refused
		}
	}
	q.log.End(&c)
	return errs
}

func itemOfID(id string) judge.Item {
	var it judge.Item
	_, _ = fmt.Sscanf(id, "m%d", &it.N) // as newID made it
	return it
}

// itemOfMessage adds the number of the content, for messages of replacedBy.
func itemOfMessage(m backend.Message) judge.Item {
	it := itemOfID(m.ID)
	it.Replace, it.AfterInFlight, it.Content = m.Replace, m.AfterInFlight, contentNumber(m.Body)
	return it
}

func itemOfLease(l backend.Lease) judge.Item {
	it := itemOfID(l.ID)
	it.Token = l.Token
	return it
}

func (q *recorded) Schedule(ctx context.Context, ms []backend.Message) []error {
	return record(q, judge.Push, ms, itemOfMessage, func() []error { return q.Queue.Schedule(ctx, ms) })
}

func (q *recorded) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	c := judge.Call{Op: judge.Receive, Lease: int64(lease), Start: time.Now().UnixNano()}
	ds, err := q.Queue.Receive(ctx, limit, lease)
	c.End = time.Now().UnixNano()
	c.Items = each(ds, func(d backend.Delivery) judge.Item {
		it := itemOfLease(d.Lease())
		it.Out, it.Attempt, it.Due, it.Until = judge.OK, d.Attempt, d.Due.UnixNano(), d.Until.UnixNano()
		it.Content = contentNumber(d.Body)
		return it
	})
	q.log.End(&c)
	return ds, err
}

func (q *recorded) Ack(ctx context.Context, ls []backend.Lease) []error {
	return record(q, judge.Ack, ls, itemOfLease, func() []error { return q.Queue.Ack(ctx, ls) })
}

func (q *recorded) Nack(ctx context.Context, rs []backend.Return) []error {
	item := func(r backend.Return) judge.Item { return itemOfLease(r.Lease) }
	return record(q, judge.Nack, rs, item, func() []error { return q.Queue.Nack(ctx, rs) })
}

func (q *recorded) Dead(ctx context.Context, rs []backend.DeadLetterRequest) []error {
	item := func(r backend.DeadLetterRequest) judge.Item { return itemOfLease(r.Lease) }
	return record(q, judge.Dead, rs, item, func() []error { return q.Queue.Dead(ctx, rs) })
}

func (q *recorded) Cancel(ctx context.Context, ids []string) []error {
	return record(q, judge.Cancel, ids, itemOfID, func() []error { return q.Queue.Cancel(ctx, ids) })
}

func (q *recorded) DeleteDead(ctx context.Context, ids []string) []error {
	return record(q, judge.DeleteDead, ids, itemOfID, func() []error { return q.Queue.DeleteDead(ctx, ids) })
}
