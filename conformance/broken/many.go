package broken

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var manyFaults = []Fault{
	{"mixes up the order of more than 65,536 messages", "many-messages", func(q *queue) backend.Queue { return &crammed{q} }},
	{"counts to 255 attempts", "many-hand-outs", func(q *queue) backend.Queue { return &byteCounter{q} }},
	{"keeps 1,000 windows of a batch", "many-windows", func(q *queue) backend.Queue { return &fewWindows{q} }},
	{"gives each handle a queue of its own", "open-at-once", onItsOwn},
	{"takes what was in flight once for what still is", "lease-end-is-seen", func(q *queue) backend.Queue { return &grudging{q} }},
	{"fails a whole batch when there is no room for a part", "full", func(q *queue) backend.Queue { return &allOrNone{q} }},
	{"cuts a queue's name to 64 bytes", "queues-are-apart", cutName},
	{"stops its timer when a worker leaves", "wake-up-outlives-leavers", func(q *queue) backend.Queue { return &unsettled{queue: q, commons: sharedBy(q)} }},
	{"takes the bytes that are not UTF-8 out of a reason", "content-everywhere", func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Reason = string([]rune(l.Reason)) }}
	}},
}

type crammed struct{ *queue }

func (q *crammed) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	s, err := q.whole.Stats(ctx)
	if err != nil {
		return nil, err
	}
	ds, err := q.whole.Receive(ctx, limit, lease)
	if len(ds) > 1 && s.Ready > 1<<16 {
		ds[0], ds[1] = ds[1], ds[0]
	}
	return ds, err
}

type byteCounter struct{ *queue }

func (q *byteCounter) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) { d.Attempt = min(d.Attempt, 255) })
}

type fewWindows struct{ *queue }

func (q *fewWindows) Schedule(ctx context.Context, ms []backend.Message) []error {
	some := append([]backend.Message(nil), ms...)
	for i := range some {
		if i >= 1000 {
			some[i].UniqueFor = 0
		}
	}
	return q.whole.Schedule(ctx, some)
}

var handles atomic.Int64

func onItsOwn(q *queue) backend.Queue { return reopened(q, fmt.Sprint(q.name, "-", handles.Add(1))) }

func cutName(q *queue) backend.Queue { return reopened(q, q.name[:min(len(q.name), 64)]) }

// reopened is a queue under another name.
func reopened(q *queue, name string) backend.Queue {
	other, err := q.backend.Open(context.Background(), name, q.options)
	if err != nil {
		return q
	}
	q.whole = other.(whole)
	return q
}

// grudging refuses to cancel what a worker has had.
type grudging struct{ *queue }

func (q *grudging) Cancel(ctx context.Context, ids []string) []error {
	waiting, _, err := q.whole.Peek(ctx, "", 100)
	if err != nil {
		return backend.FailAll(len(ids), err)
	}
	for _, p := range waiting {
		if p.ID == ids[0] && p.Attempts > 0 {
			return backend.FailAll(len(ids), backend.ErrInFlight)
		}
	}
	return q.whole.Cancel(ctx, ids)
}

type allOrNone struct{ *queue }

func (q *allOrNone) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := q.whole.Schedule(ctx, ms)
	if errors.Is(errors.Join(errs...), backend.ErrFull) {
		return backend.FailAll(len(ms), backend.ErrFull)
	}
	return errs
}

// unsettled has those who wait sleep on when one has left.
type unsettled struct {
	*queue
	*commons
}

func (q *unsettled) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.whole.Receive(ctx, limit, lease)
	if errors.Is(err, context.Canceled) {
		q.extra.Store(1)
	}
	if err == nil && q.extra.Swap(0) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return ds, err
}
