package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var lossFaults = []Fault{
	{Name: "loses a message on nack", Rule: "nack-keeps", breaks: func(q *queue) {
		q.nack = func(ctx context.Context, rs []backend.Return) []error {
			ls := make([]backend.Lease, len(rs))
			for i, r := range rs {
				ls[i] = r.Lease
			}
			return q.Queue.Ack(ctx, ls)
		}
	}},
	{Name: "loses a message when a context ends", Rule: "context-end-loses-nothing", breaks: receiveAfterEnd},
	{Name: "takes a message under a context that has ended", Rule: "context-ended", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			if ctx.Err() == nil {
				return q.Queue.Receive(ctx, limit, lease)
			}
			return q.now(limit, lease)
		}
	}},
	{Name: "returns one error for a batch whose context has ended", Rule: "context-ended", breaks: func(q *queue) {
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			if err := ctx.Err(); err != nil {
				return []error{err}
			}
			return q.Queue.Ack(ctx, ls)
		}
	}},
	{Name: "returns no ends for leases that it fails to extend", Rule: "context-ended", breaks: func(q *queue) {
		q.extend = func(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
			ends, errs := q.Queue.Extend(ctx, ls, lease)
			if ctx.Err() != nil {
				ends = nil
			}
			return ends, errs
		}
	}},
	{Name: "gets nothing under a context that has ended", Rule: "context-ended", breaks: func(q *queue) {
		q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
			ms, errs := q.Queue.Get(ctx, ids)
			if ctx.Err() != nil {
				ms = nil
			}
			return ms, errs
		}
	}},
	{Name: "returns the cause of a context instead of its error", Rule: "context-ended", breaks: func(q *queue) {
		q.nack = func(ctx context.Context, rs []backend.Return) []error {
			if err := context.Cause(ctx); err != nil {
				return backend.FailAll(len(rs), err)
			}
			return q.Queue.Nack(ctx, rs)
		}
	}},
	{Name: "takes an ended deadline for a cancel", Rule: "context-ended", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			if ctx.Err() != nil {
				return nil, context.Canceled
			}
			return q.Queue.Receive(ctx, limit, lease)
		}
	}},
	{Name: "lists queues under a context that has ended", Rule: "context-ended", lists: func(names []string, err error) ([]string, error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		return names, err
	}},
	{Name: "loses the messages of a dead worker", Rule: "lease-ends", breaks: func(q *queue) {
		q.onReceived(q.drop)
		q.ack = succeed
	}},
	{Name: "loses the rest of a batch after one failure", Rule: "batch-outcomes", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			for i := range ms {
				if errs := q.Queue.Schedule(ctx, ms[i:i+1]); errs != nil {
					return backend.FailAll(len(ms), errs[0])
				}
			}
			return nil
		}
	}},
	{Name: "hands out more than was asked for", Rule: "receive-limit", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			return q.Queue.Receive(ctx, limit+1, lease)
		}
	}},
	{Name: "loses a message one time in fifty when a call is broken off", Rule: "random-cancellations", breaks: func(q *queue) {
		var n atomic.Int64
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			ds, err := q.Queue.Receive(ctx, limit, lease)
			if len(ds) > 0 && limit < 100 && n.Add(1)%50 == 0 { // the check drains with larger calls
				q.drop(ds)
				return nil, context.Canceled
			}
			return ds, err
		}
	}},
	{Name: "hands a message to two workers", Rule: "exactly-one-worker", breaks: handOutTwice},
	{Name: "hands a message out again after its ack", Rule: "done-is-done", breaks: func(q *queue) {
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			_, errs := q.Queue.Extend(ctx, ls, time.Second)
			return errs
		}
	}},
	{Name: "replaces a message by a second one of its id", Rule: "same-id", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			for _, m := range ms {
				q.Queue.Cancel(ctx, []string{m.ID})
			}
			return q.Queue.Schedule(ctx, ms)
		}
	}},
	{Name: "leaves an entry behind for each message", Rule: "leaves-nothing", breaks: func(q *queue) {
		index := sync.OnceValues(func() (backend.Queue, error) { return q.backend.Open(context.Background(), q.name+".index", q.options) })
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			if side, err := index(); err == nil {
				side.Schedule(ctx, changed(q, ms, func(m *backend.Message) { m.Body, m.Headers = nil, nil }))
			}
			return q.Queue.Schedule(ctx, ms)
		}
	}},
	{Name: "counts messages in flight as ready", Rule: "stats", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) { s.Ready, s.InFlight = s.Ready+s.InFlight, 0 })
	}},
	{Name: "counts all that is due within an hour as due within a minute", Rule: "stats-due", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) {
			s.Due[0], s.Due[1], s.Due[2] = s.Due[0]+s.Due[1]+s.Due[2], 0, 0
		})
	}},
	{Name: "measures how long the newest ready message has waited", Rule: "stats-due", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) { s.OldestReady = min(s.OldestReady, time.Second) })
	}},
	{Name: "counts pushes and not their messages", Rule: "stats-activity", breaks: func(q *queue) {
		var calls atomic.Int64
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			calls.Add(1)
			return q.Queue.Schedule(ctx, ms)
		}
		q.onStats(func(s *backend.Stats) { s.Activity.Pushed = calls.Load() })
	}},
	{Name: "counts a nack as an ack", Rule: "stats-activity", breaks: func(q *queue) {
		nacked := countNacks(q)
		q.onStats(func(s *backend.Stats) { s.Activity.Acked += nacked.Load() })
	}},
	{Name: "counts an ack that came too late", Rule: "stats-activity", breaks: func(q *queue) {
		var acks atomic.Int64
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			acks.Add(int64(len(ls)))
			return q.Queue.Ack(ctx, ls)
		}
		q.onStats(func(s *backend.Stats) { s.Activity.Acked = acks.Load() })
	}},
	{Name: "counts a dead letter as an ack", Rule: "stats-activity", breaks: func(q *queue) {
		var died atomic.Int64
		q.dead = func(ctx context.Context, rs []backend.DeadLetterRequest) []error {
			died.Add(int64(len(rs)))
			return q.Queue.Dead(ctx, rs)
		}
		q.onStats(func(s *backend.Stats) { s.Activity.Acked += died.Load() })
	}},
	{Name: "does not count a push that replaces a message", Rule: "stats-activity", breaks: func(q *queue) {
		var replaced atomic.Int64
		q.onReplace(func(_ *backend.Message, old backend.MessageInfo) {
			if old.State != 0 {
				replaced.Add(1)
			}
		})
		q.onStats(func(s *backend.Stats) { s.Activity.Pushed -= replaced.Load() })
	}},
	{Name: "counts the lateness in whole seconds", Rule: "stats-activity", breaks: func(q *queue) {
		second := slices.Index(backend.LatenessBounds(), time.Second)
		q.onStats(func(s *backend.Stats) {
			for i := 1; i <= second; i++ {
				s.Activity.Lateness[0], s.Activity.Lateness[i] = s.Activity.Lateness[0]+s.Activity.Lateness[i], 0
			}
		})
	}},
	{Name: "counts the pushes of one handle", Rule: "stats-activity", breaks: func(q *queue) {
		var pushed atomic.Int64
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms)
			for _, err := range errs {
				if err == nil {
					pushed.Add(1)
				}
			}
			return errs
		}
		q.onStats(func(s *backend.Stats) { s.Activity.Pushed = pushed.Load() })
	}},
	{Name: "counts a message that comes again as one that came late", Rule: "stats-activity", breaks: func(q *queue) {
		nacked := countNacks(q)
		q.onStats(func(s *backend.Stats) { s.Activity.Lateness[0] += nacked.Load() })
	}},
	{Name: "counts the lateness in another unit", Rule: "stats-activity", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) { copy(s.Activity.Lateness[1:], s.Activity.Lateness[:]) })
	}},
	{Name: "does not count pushes, and does not declare it", Rule: "stats-known", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) { s.Activity = backend.UnknownActivity })
	}},
	{Name: "mixes up queues whose names are alike", Rule: "queues-are-apart", breaks: func(q *queue) {
		q.reopen(q.name[:min(len(q.name), len("conformance.queues-are-apart"))])
	}},
}

// countNacks counts the messages of all nacks.
func countNacks(q *queue) *atomic.Int64 {
	var nacked atomic.Int64
	q.nack = func(ctx context.Context, rs []backend.Return) []error {
		nacked.Add(int64(len(rs)))
		return q.Queue.Nack(ctx, rs)
	}
	return &nacked
}

// receiveAfterEnd goes on receiving after the context has ended, and drops what it gets, as a BLPOP
// does on a connection that its client has abandoned.
func receiveAfterEnd(q *queue) {
	type result struct {
		ds  []backend.Delivery
		err error
	}
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		got := make(chan result, 1)
		go func() {
			ds, err := q.Queue.Receive(context.WithoutCancel(ctx), limit, lease)
			ours := slices.Clone(ds) // the caller may change those that it receives
			got <- result{ds, err}
			if ctx.Err() != nil {
				q.drop(ours)
			}
		}()
		select {
		case r := <-got:
			return r.ds, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// handOutTwice hands out each tenth message a second time.
func handOutTwice(q *queue) {
	var n int
	var again []backend.Delivery
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		q.mu.Lock()
		ds := again
		again = nil
		q.mu.Unlock()
		if ds != nil {
			return ds, nil
		}
		ds, err := q.Queue.Receive(ctx, limit, lease)
		q.mu.Lock()
		defer q.mu.Unlock()
		if n += len(ds); n >= 10 {
			n, again = 0, slices.Clone(ds[:1]) // the caller may change those that it receives
		}
		return ds, err
	}
	q.ack = q.ackAlways
}
