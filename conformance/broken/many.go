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
	{Name: "mixes up the order of more than 65,536 messages", Rule: "many-messages", wrap: func(q *queue) backend.Queue { return &crammed{q} }},
	{Name: "counts to 255 attempts", Rule: "many-hand-outs", wrap: func(q *queue) backend.Queue { return &byteCounter{q} }},
	{Name: "keeps 1,000 windows of a batch", Rule: "many-windows", wrap: func(q *queue) backend.Queue { return &fewWindows{q} }},
	{Name: "gives each handle a queue of its own", Rule: "open-at-once", wrap: onItsOwn},
	{Name: "takes what was in flight once for what still is", Rule: "lease-end-is-seen", wrap: func(q *queue) backend.Queue { return &grudging{q} }},
	{Name: "fails a whole batch when there is no room for a part", Rule: "full", wrap: func(q *queue) backend.Queue { return &allOrNone{q} }},
	{Name: "cuts a queue's name to 64 bytes", Rule: "queues-are-apart", wrap: cutName},
	{Name: "stops its timer when a worker leaves", Rule: "wake-up-outlives-leavers", wrap: func(q *queue) backend.Queue { return &unsettled{queue: q, commons: sharedBy(q)} }},
	{Name: "takes the bytes that are not UTF-8 out of a reason", Rule: "content-everywhere", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Reason = string([]rune(l.Reason)) }}
	}},
}

type crammed struct{ *queue }

func (q *crammed) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	s, err := q.Queue.Stats(ctx)
	if err != nil {
		return nil, err
	}
	ds, err := q.Queue.Receive(ctx, limit, lease)
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
	return q.Queue.Schedule(ctx, some)
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
	q.Queue = other
	return q
}

// grudging refuses to cancel what a worker has had.
type grudging struct{ *queue }

func (q *grudging) Cancel(ctx context.Context, ids []string) []error {
	waiting, _, err := q.Queue.Peek(ctx, "", 100)
	if err != nil {
		return backend.FailAll(len(ids), err)
	}
	for _, p := range waiting {
		if p.ID == ids[0] && p.Attempts > 0 {
			return backend.FailAll(len(ids), backend.ErrInFlight)
		}
	}
	return q.Queue.Cancel(ctx, ids)
}

type allOrNone struct{ *queue }

func (q *allOrNone) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := q.Queue.Schedule(ctx, ms)
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
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if errors.Is(err, context.Canceled) {
		q.extra.Store(1)
	}
	if err == nil && q.extra.Swap(0) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return ds, err
}
