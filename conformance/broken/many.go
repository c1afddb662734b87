package broken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var handles atomic.Int64

var manyFaults = []Fault{
	{
		Name: "lists no more queues than one", Rule: "lists-queues",
		lists: func(names []string, err error) ([]string, error) { return names[:min(1, len(names))], err },
	},
	{
		Name: "lists a queue for each of its handles", Rule: "lists-queues",
		lists: func(names []string, err error) ([]string, error) { return slices.Concat(names, names), err },
	},
	{Name: "mixes up the order of more than 65,536 messages", Rule: "many-messages", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
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
	}},
	{Name: "counts to 255 attempts", Rule: "many-hand-outs", breaks: func(q *queue) { q.countTo(255) }},
	{Name: "keeps 1,000 windows of a batch", Rule: "many-windows", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			i := 0
			return q.Queue.Schedule(ctx, changed(q, ms, func(m *backend.Message) {
				if i++; i > 1000 {
					m.UniqueFor = 0
				}
			}))
		}
	}},
	{Name: "gives each handle a queue of its own", Rule: "open-at-once", breaks: func(q *queue) {
		q.reopen(fmt.Sprint(q.name, "-", handles.Add(1)))
	}},
	{Name: "takes a message that was in flight for one that still is", Rule: "lease-end-is-seen", breaks: func(q *queue) {
		q.cancel = func(ctx context.Context, ids []string) []error {
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
	}},
	{Name: "fails a whole batch when there is no room for a part", Rule: "full", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms)
			if errors.Is(errors.Join(errs...), backend.ErrFull) {
				return backend.FailAll(len(ms), backend.ErrFull)
			}
			return errs
		}
	}},
	{Name: "replaces no message in a full queue", Rule: "full", breaks: func(q *queue) {
		full := false
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			if full && ms[0].Replace {
				return backend.FailAll(len(ms), backend.ErrFull)
			}
			errs := q.Queue.Schedule(ctx, ms)
			full = full || errors.Is(errors.Join(errs...), backend.ErrFull)
			return errs
		}
	}},
	{Name: "cuts a queue's name to 64 bytes", Rule: "queues-are-apart", breaks: func(q *queue) {
		q.reopen(q.name[:min(len(q.name), 64)])
	}},
	{Name: "stops its timer when a worker leaves", Rule: "wake-up-outlives-leavers", breaks: func(q *queue) {
		s := q.shared()
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			ds, err := q.Queue.Receive(ctx, limit, lease)
			if errors.Is(err, context.Canceled) {
				s.extra.Store(1)
			}
			if err == nil && s.extra.Swap(0) == 1 {
				return forever(ctx)
			}
			return ds, err
		}
	}},
	{Name: "removes bytes that are not UTF-8 from a reason", Rule: "content-everywhere", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.Reason = string([]rune(l.Reason)) })
	}},
}

func (q *queue) countTo(most int) {
	q.onDelivery(func(d *backend.Delivery) { d.Attempt = min(d.Attempt, most) })
}
