package delayq

import (
	"cmp"
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/valid"
)

// Stats counts the messages of a queue. Each message is in exactly one of Scheduled, Ready,
// InFlight and Dead.
type Stats = backend.Stats

// Unknown is the value of a count or a time of [Stats] that a backend without the feature
// [CountingScheduled] cannot tell.
const Unknown = backend.Unknown

// DueHistogram counts the scheduled messages of [Stats] by how soon they are due.
type DueHistogram = backend.DueHistogram

// DueBounds returns the bounds of the intervals of a [DueHistogram]: a minute, 10 minutes, an hour,
// 6 hours, a day, a week. The last interval of a histogram has none.
func DueBounds() []time.Duration { return backend.DueBounds() }

type (
	// Activity counts what was done with a queue's messages, for rates: it is in [Stats].
	Activity = backend.Activity
	// LatenessHistogram counts the hand-outs of [Activity] by how late they were.
	LatenessHistogram = backend.LatenessHistogram
)

// LatenessBounds returns the bounds of a [LatenessHistogram]: 1, 2 and 5 ms and so on up to 10 s, a
// minute, 10 minutes, an hour. The last count of a histogram has none.
func LatenessBounds() []time.Duration { return backend.LatenessBounds() }

type (
	// MessageInfo is a message as [Inspector.Get], [Inspector.Peek] and [DeadLetters.List] show it.
	MessageInfo = backend.MessageInfo
	// Pending is one that waits: scheduled, or due and not handed out. [Inspector.Peek] returns it.
	Pending = backend.Pending
)

// State is where a message is in its life.
type State = backend.State

// The states. A message in the queue is in one of the first four.
const (
	StateScheduled = backend.StateScheduled // not due yet
	StateReady     = backend.StateReady     // due and not leased, also where a lease has ended
	StateInFlight  = backend.StateInFlight  // leased
	StateDead      = backend.StateDead      // a dead letter
	StateDone      = backend.StateDone      // acknowledged, cancelled or deleted, and UniqueFor keeps its id
)

func (q *queue) Stats(ctx context.Context) (s Stats, err error) {
	err = q.call(ctx, Counting, "stats", "", nil, func() error { s, err = q.store.Stats(ctx); return err })
	return s, err
}

func (q *queue) Get(ctx context.Context, id string) (MessageInfo, error) {
	if err := cmp.Or(q.lacks(Getting, "get"), valid.Context(ctx), valid.ID(id)); err != nil {
		return MessageInfo{}, q.fail("get", id, err)
	}
	ms, errs := q.store.Get(ctx, []string{id})
	showLimits(ms)
	return ms[0], q.fail("get", id, cmp.Or(errs...))
}

func (q *queue) GetBatch(ctx context.Context, ids []string) ([]MessageInfo, error) {
	id, invalid := valid.IDs(ids)
	if err := cmp.Or(q.lacks(Getting, "get"), q.validBatch(ctx, len(ids)), invalid); err != nil || len(ids) == 0 {
		return nil, q.fail("get", id, err)
	}
	ms, errs := q.store.Get(ctx, ids)
	showLimits(ms)
	return ms, q.fail("get", "", batchError(errs))
}

func (q *queue) Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error) {
	return q.page(ctx, Peeking, "peek", cursor, limit, q.store.Peek)
}

// page returns one page of messages.
func (q *queue) page(
	ctx context.Context, f Feature, op, cursor string, limit int,
	list func(ctx context.Context, cursor string, limit int) ([]MessageInfo, string, error),
) (page []MessageInfo, next string, err error) {
	err = q.call(ctx, f, op, "", validLimit(limit), func() error {
		page, next, err = list(ctx, cursor, limit)
		showLimits(page)
		return err
	})
	return page, next, err
}

// showLimits moves the messages' own limits from their headers to their field.
func showLimits(ms []MessageInfo) {
	for i := range ms {
		ms[i].Limits = limits.Take(&ms[i].Headers).Shown()
	}
}

func (q *queue) Purge(ctx context.Context) (removed int64, err error) {
	err = q.call(ctx, Purging, "purge", "", nil, func() error { removed, err = q.store.Purge(ctx); return err })
	return removed, err
}
