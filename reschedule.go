package delayq

import (
	"cmp"
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// Move is a message's id and its new due time, for [Canceler.RescheduleBatch]: at Due, or where
// that is zero after Delay from now, by the store's clock.
type Move = backend.Move

func (q *queue) Cancel(ctx context.Context, id string) error {
	cancel := func() error { return cmp.Or(q.store.Cancel(ctx, []string{id})...) }
	return q.change(ctx, Cancelling, telemetry.Cancel, id, 1, valid.ID(id), cancel)
}

func (q *queue) CancelBatch(ctx context.Context, ids []string) error {
	cancel := func() error { return batchError(q.store.Cancel(ctx, ids)) }
	return q.change(ctx, Cancelling, telemetry.Cancel, "", len(ids), valid.Each(ids, valid.ID), cancel)
}

func (q *queue) Reschedule(ctx context.Context, id string, due time.Time) error {
	return q.move(ctx, Move{ID: id, Due: due}, valid.Due(due))
}

func (q *queue) RescheduleAfter(ctx context.Context, id string, delay time.Duration) error {
	return q.move(ctx, Move{ID: id, Delay: delay}, valid.Delay(delay, q.traits))
}

func (q *queue) move(ctx context.Context, m Move, invalidTime error) error {
	move := func() error { return cmp.Or(q.store.Reschedule(ctx, []Move{m})...) }
	return q.change(ctx, Rescheduling, telemetry.Reschedule, m.ID, 1, cmp.Or(valid.ID(m.ID), invalidTime), move)
}

func (q *queue) RescheduleBatch(ctx context.Context, ms []Move) error {
	move := func() error { return batchError(q.store.Reschedule(ctx, ms)) }
	invalid := valid.Each(ms, func(m Move) error { return valid.Move(m, q.traits) })
	return q.change(ctx, Rescheduling, telemetry.Reschedule, "", len(ms), invalid, move)
}

// change makes a call on n messages that wait.
func (q *queue) change(ctx context.Context, f Feature, op, id string, n int, invalid error, call func() error) error {
	return q.call(ctx, f, op, id, cmp.Or(q.validBatch(ctx, n), invalid), func() error {
		if n == 0 {
			return nil
		}
		began := q.telemetry.Start()
		err := call()
		q.telemetry.Operation(ctx, op, began, err)
		return err
	})
}
