package delayq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/telemetry"
)

// How many calls may be in flight before others wait for one of them. With few, two callers on a
// long round trip wait for each other, and each gets half of what it had alone. With many, batches
// are smaller, and workers that settle apart are idle apart: each claim then takes fewer messages.
const (
	pushCalls   = 4
	settleCalls = 2
)

// batch makes the batchers. A store in this process has no round trips to share.
func (q *queue) batch() {
	direct := !q.Supports(Durability)
	q.pushes = batcher.New(batcher.Config[backend.Message]{
		Send:  q.store.Schedule,
		Size:  func(m backend.Message) int { return len(m.Body) + headerBytes(m.Headers) },
		Copy:  copyMessage,
		Calls: pushCalls, Widen: true, MaxItems: MaxBatch, Direct: direct,
	})
	q.acks = batcher.New(batcher.Config[backend.Lease]{Send: q.store.Ack, Calls: settleCalls, MaxItems: MaxBatch, Direct: direct})
	q.nacks = batcher.New(batcher.Config[backend.Return]{
		Send:  q.store.Nack,
		Size:  func(r backend.Return) int { return headerBytes(r.Headers) },
		Copy:  copyReturn,
		Calls: settleCalls, MaxItems: MaxBatch, Direct: direct,
	})
}

func copyMessage(m backend.Message) backend.Message {
	m.Body, m.Headers = append([]byte(nil), m.Body...), maps.Clone(m.Headers)
	return m
}

func copyReturn(r backend.Return) backend.Return {
	r.Headers = maps.Clone(r.Headers)
	return r
}

func (q *queue) Push(ctx context.Context, body []byte, opts ...PushOption) (string, error) {
	m := Message{Body: body}
	if err := apply(&m, opts); err != nil {
		return "", q.fail("push", m.ID, err)
	}
	made, err := q.prepare(ctx, &m)
	if err != nil {
		return "", q.fail("push", m.ID, err)
	}
	item := &[1]backend.Message{m}
	ctx, pushing := q.telemetry.StartPush(ctx, item[:])
	if err = q.pushes.Do(ctx, item); err == nil {
		m.ID = item[0].ID // also where the store made it
	}
	err = pushed(err, made)
	pushing.End(ctx, item[:], err)
	return m.ID, q.fail("push", m.ID, err)
}

func (q *queue) PushBatch(ctx context.Context, ms []Message) ([]string, error) {
	if err := q.validBatch(ctx, len(ms)); err != nil || len(ms) == 0 {
		return nil, q.fail("push", "", err)
	}
	batch := make([]backend.Message, len(ms))
	made := make([]bool, len(ms))
	for i, m := range ms {
		var err error
		if made[i], err = q.prepare(ctx, &m); err != nil {
			return nil, q.fail("push", "", fmt.Errorf("message %d of the batch: %w", i, err))
		}
		batch[i] = m
	}
	ctx, pushing := q.telemetry.StartPush(ctx, batch)
	errs := q.store.Schedule(ctx, batch)
	ids := q.idsOf(batch, errs)
	for i, err := range errs {
		errs[i] = pushed(err, made[i])
	}
	pushing.End(ctx, batch, errs...)
	return ids, q.fail("push", "", batchError(errs))
}

// idsOf returns the ids of messages that were pushed. A store that makes them has made none for
// what it refused.
func (q *queue) idsOf(ms []backend.Message, errs []error) []string {
	ids := make([]string, len(ms))
	for i := range ms {
		if refused := errs != nil && errs[i] != nil; !refused || q.Supports(OwnIDs) {
			ids[i] = ms[i].ID
		}
	}
	return ids
}

// prepare validates a message and gives it an id where it has none, and the store makes none.
func (q *queue) prepare(ctx context.Context, m *Message) (madeID bool, err error) {
	if err := firstError(validContext(ctx), q.validUnique(m)); err != nil {
		return false, err
	}
	if m.ID == "" && q.Supports(OwnIDs) {
		m.ID, madeID = newID(), true
	}
	return madeID, q.validMessage(m)
}

// pushed judges the outcome of a push. Nobody else has an id that was made here, so a
// message of that id is this one, stored by an earlier try of the client library.
func pushed(err error, madeID bool) error {
	if madeID && errors.Is(err, ErrDuplicate) {
		return nil
	}
	return err
}

func (q *queue) Cancel(ctx context.Context, id string) error {
	if err := firstError(q.lacks(Cancelling, "cancel"), validContext(ctx), validID(id)); err != nil {
		return q.fail("cancel", id, err)
	}
	began := q.telemetry.Start()
	err := one(q.store.Cancel(ctx, []string{id}))
	q.telemetry.Operation(ctx, telemetry.Cancel, began, err)
	return q.fail("cancel", id, err)
}

func (q *queue) Reschedule(ctx context.Context, id string, due time.Time) error {
	if err := firstError(q.lacks(Rescheduling, "reschedule"), validContext(ctx), validID(id), validDue(due)); err != nil {
		return q.fail("reschedule", id, err)
	}
	began := q.telemetry.Start()
	err := one(q.store.Reschedule(ctx, []backend.Move{{ID: id, Due: due}}))
	q.telemetry.Operation(ctx, telemetry.Reschedule, began, err)
	return q.fail("reschedule", id, err)
}
