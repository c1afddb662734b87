package delayq

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// Move is a message's id and its new due time, for [Canceler.RescheduleBatch]: at Due, or where
// that is zero after Delay from now, by the store's clock.
type Move = backend.Move

func (q *queue) Cancel(ctx context.Context, id string) error {
	invalid := cmp.Or(q.lacks(Cancelling, telemetry.Cancel), valid.Context(ctx), valid.ID(id))
	return q.change(ctx, telemetry.Cancel, id, invalid, func() error { return one(q.store.Cancel(ctx, []string{id})) })
}

func (q *queue) CancelBatch(ctx context.Context, ids []string) error {
	invalid := cmp.Or(q.lacks(Cancelling, telemetry.Cancel), q.validBatch(ctx, len(ids)), eachOf(ids, valid.ID))
	if invalid == nil && len(ids) == 0 {
		return nil
	}
	return q.change(ctx, telemetry.Cancel, "", invalid, func() error { return batchError(q.store.Cancel(ctx, ids)) })
}

func (q *queue) Reschedule(ctx context.Context, id string, due time.Time) error {
	return q.move(ctx, Move{ID: id, Due: due}, valid.Due(due))
}

func (q *queue) RescheduleAfter(ctx context.Context, id string, delay time.Duration) error {
	return q.move(ctx, Move{ID: id, Delay: delay}, valid.Delay(delay, q.traits))
}

func (q *queue) move(ctx context.Context, m Move, invalidTime error) error {
	invalid := cmp.Or(q.lacks(Rescheduling, telemetry.Reschedule), valid.Context(ctx), valid.ID(m.ID), invalidTime)
	return q.change(ctx, telemetry.Reschedule, m.ID, invalid, func() error { return one(q.store.Reschedule(ctx, []Move{m})) })
}

func (q *queue) RescheduleBatch(ctx context.Context, ms []Move) error {
	invalid := cmp.Or(q.lacks(Rescheduling, telemetry.Reschedule), q.validBatch(ctx, len(ms)), eachOf(ms, func(m Move) error { return valid.Move(m, q.traits) }))
	if invalid == nil && len(ms) == 0 {
		return nil
	}
	return q.change(ctx, telemetry.Reschedule, "", invalid, func() error { return batchError(q.store.Reschedule(ctx, ms)) })
}

// change makes a call on messages that wait.
func (q *queue) change(ctx context.Context, op, id string, invalid error, call func() error) error {
	if invalid != nil {
		return q.fail(op, id, invalid)
	}
	began := q.telemetry.Start()
	err := call()
	q.telemetry.Operation(ctx, op, began, err)
	return q.fail(op, id, err)
}

// eachOf returns the error of the first item that is invalid.
func eachOf[T any](items []T, valid func(T) error) error {
	for i, item := range items {
		if err := valid(item); err != nil {
			return fmt.Errorf("message %d of the batch: %w", i, err)
		}
	}
	return nil
}
