package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

var stateFaults = []Fault{
	{Name: "returns that it cancelled a message, and hands it out", Rule: "cancel", breaks: func(q *queue) { q.cancel = succeed }},
	{Name: "returns success for the cancel of a message in flight", Rule: "cancel-in-flight", breaks: func(q *queue) {
		q.cancel = func(ctx context.Context, ids []string) []error {
			return without(q.Queue.Cancel(ctx, ids), backend.ErrInFlight)
		}
	}},
	{Name: "cancels messages that do not exist", Rule: "cancel-settled", breaks: func(q *queue) {
		q.cancel = func(ctx context.Context, ids []string) []error {
			return without(q.Queue.Cancel(ctx, ids), backend.ErrNotFound)
		}
	}},
	{Name: "looks, and cancels later", Rule: "cancel-race", breaks: func(q *queue) {
		cancelled := make(map[string]bool)
		q.cancel = func(ctx context.Context, ids []string) []error {
			s, err := q.Queue.Stats(ctx)
			if err != nil || s.Ready == 0 {
				return q.Queue.Cancel(ctx, ids)
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			if cancelled[ids[0]] {
				return []error{backend.ErrNotFound}
			}
			cancelled[ids[0]] = true
			return nil
		}
	}},
	{Name: "moves a message in flight", Rule: "reschedule-states", breaks: func(q *queue) {
		q.reschedule = func(ctx context.Context, ms []backend.Move) []error {
			return without(q.Queue.Reschedule(ctx, ms), backend.ErrInFlight)
		}
	}},
	{Name: "hands out dead messages", Rule: "dead-is-out", breaks: func(q *queue) {
		q.dead = func(ctx context.Context, rs []backend.DeadLetterRequest) []error {
			back := make([]backend.Return, len(rs))
			for i, r := range rs {
				back[i].Lease = r.Lease
			}
			return q.Queue.Nack(ctx, back)
		}
	}},
	{Name: "dead-letters before the attempts are used up", Rule: "poison", breaks: func(q *queue) {
		q.nack = func(ctx context.Context, rs []backend.Return) []error {
			dead := make([]backend.DeadLetterRequest, len(rs))
			for i, r := range rs {
				dead[i].Lease = r.Lease
			}
			return q.Queue.Dead(ctx, dead)
		}
	}},
	{Name: "retries a message that crashes its worker for ever", Rule: "poison-kills-worker", breaks: func(q *queue) { q.countTo(2) }},
	{Name: "redrives in the order of deaths", Rule: "redrive", breaks: func(q *queue) {
		q.redrive = func(ctx context.Context, ids []string) []error {
			return q.Queue.Redrive(ctx, slices.Sorted(slices.Values(ids))) // the suite makes ids that rise
		}
	}},
	{Name: "deletes no dead letter, and returns success", Rule: "delete-dead", breaks: func(q *queue) { q.deleteDead = succeed }},
	{Name: "shows one reason for all letters of a page of nine", Rule: "dead-filter", breaks: func(q *queue) {
		q.listDead = func(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
			page, next, err := q.Queue.ListDead(ctx, cursor, limit)
			for i := range page {
				if len(page) == 9 {
					page[i].Reason = page[0].Reason
				}
			}
			return page, next, err
		}
	}},
	{Name: "accepts a push after Close", Rule: "closed", breaks: func(q *queue) {
		other := sync.OnceValues(func() (backend.Queue, error) { return q.backend.Open(context.Background(), q.name, q.options) })
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			side, err := other()
			if err != nil {
				return backend.FailAll(len(ms), err)
			}
			return side.Schedule(ctx, ms)
		}
	}},
	{Name: "lists queues after Close", Rule: "closed", lists: func(names []string, err error) ([]string, error) {
		if errors.Is(err, backend.ErrClosed) {
			err = nil
		}
		return names, err
	}},
	{Name: "sleeps on after Close", Rule: "close-wakes", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			ds, err := q.Queue.Receive(ctx, limit, lease)
			if errors.Is(err, backend.ErrClosed) {
				<-ctx.Done()
			}
			return ds, err
		}
	}},
	{Name: "deletes its messages when it closes", Rule: "close-keeps", breaks: func(q *queue) {
		q.close = func() error {
			for {
				ds, err := q.now(100, time.Hour)
				if err != nil {
					return q.Queue.Close()
				}
				q.drop(ds)
			}
		}
	}},
	{Name: "gives back what it has leased when it closes", Rule: "close-keeps", breaks: func(q *queue) {
		var rs []backend.Return
		q.onDelivery(func(d *backend.Delivery) { rs = append(rs, backend.Return{Lease: d.Lease()}) })
		q.close = func() error {
			q.Queue.Nack(context.Background(), rs)
			return q.Queue.Close()
		}
	}},
	{Name: "deletes dead letters when it closes", Rule: "close-keeps", breaks: func(q *queue) {
		q.close = func() error {
			ids, _, _ := q.Queue.ListDeadIDs(context.Background(), "", everything)
			q.Queue.DeleteDead(context.Background(), ids)
			return q.Queue.Close()
		}
	}},
	{Name: "leaves a goroutine behind", Rule: "close-leaves-no-goroutine", breaks: func(q *queue) {
		q.close = func() error {
			go func() { <-time.After(5 * time.Second) }() // longer than the check looks for it
			return q.Queue.Close()
		}
	}},
	{Name: "counts messages that it fetched ahead as attempted", Rule: "stop-returns-untouched", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			ahead, _ := q.now(20, lease)
			for _, d := range ahead {
				q.Queue.Nack(context.Background(), []backend.Return{{Lease: d.Lease()}})
			}
			return q.Queue.Receive(ctx, limit, lease)
		}
	}},
	{Name: "never retries a message that failed", Rule: "consume", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.Delay += year })
	}},
	{Name: "pushes one message more for each", Rule: "bad-input", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			q.Queue.Schedule(ctx, changed(q, ms, func(m *backend.Message) { m.ID += "+" }))
			return q.Queue.Schedule(ctx, ms)
		}
	}},
	{Name: "claims to cancel, and cannot", Rule: "unsupported", breaks: func(q *queue) {
		q.cancel = func(_ context.Context, ids []string) []error {
			return backend.FailAll(len(ids), &backend.UnsupportedError{Backend: "broken", Op: "cancel"})
		}
	}},
	{Name: "lets a lease be extended after an ack", Rule: "model", breaks: ignoreExtend},
}
