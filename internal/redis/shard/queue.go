package shard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/store"
)

// Queue is one queue on several stores. Its methods are as in handle.Messages. A call does its part in
// each store at the same time, so it takes as long as the slowest. It is safe for concurrent use.
type Queue struct {
	shards []*shard
	Config

	injected bool // the clock was given, and the servers go by it

	mu     sync.Mutex
	turn   int       // the next shard that is looked at without a reason
	looked time.Time // when one was
}

var _ queue.Messages = (*Queue)(nil)

// Config holds the settings of a queue.
type Config struct {
	Calls *call.Group     // of the backend
	Poll  time.Duration   // so often one shard is looked at without a reason
	Clock clockwork.Clock // nil for the servers' own
	Wake  func(channel string)
}

// New returns the queue of a name with n shards, a power of two.
func New(c Config, stores store.Config, name string, n int) *Queue {
	q := &Queue{Config: c, injected: c.Clock != nil}
	for _, tag := range Tags(name, n) {
		q.shards = append(q.shards, &shard{Store: store.New(stores, tag, c.Clock)})
	}
	if !q.injected {
		q.Clock = clockwork.NewRealClock()
	}
	return q
}

// Channels are those of all shards.
func (q *Queue) Channels() (all []string) {
	for _, s := range q.shards {
		all = append(all, s.Channels()...)
	}
	return all
}

// split has each shard do its part of n items. do gets the items' places, and returns an error for
// each, or nil.
func (q *Queue) split(n int, id func(i int) string, do func(s *store.Store, places []int) []error) []error {
	parts := make(map[*shard][]int)
	for i := range n {
		s := q.shards[of(id(i), len(q.shards))]
		parts[s] = append(parts[s], i)
	}
	errs := make([]error, n)
	var ended sync.WaitGroup
	for s, places := range parts {
		part := func() {
			for k, err := range do(s.Store, places) {
				errs[places[k]] = err
			}
		}
		if len(parts) == 1 {
			part()
			break
		}
		ended.Go(part)
	}
	ended.Wait()
	return backend.Each(n, func(i int) error { return errs[i] })
}

// pick returns the items at some places.
func pick[T any](items []T, places []int) []T {
	if len(places) == len(items) {
		return items
	}
	picked := make([]T, len(places))
	for k, i := range places {
		picked[k] = items[i]
	}
	return picked
}

// Schedule is as in backend.Queue.
func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.split(len(ms), func(i int) string { return ms[i].ID }, func(s *store.Store, places []int) []error {
		return s.Schedule(ctx, pick(ms, places))
	})
}

// Ack is as in backend.Queue.
func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.split(len(ls), func(i int) string { return ls[i].ID }, func(s *store.Store, places []int) []error {
		return s.Ack(ctx, pick(ls, places))
	})
}

// Nack is as in backend.Queue.
func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.split(len(rs), func(i int) string { return rs[i].ID }, func(s *store.Store, places []int) []error {
		return s.Nack(ctx, pick(rs, places))
	})
}

// Extend is as in backend.Queue.
func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	return ends, q.split(len(ls), func(i int) string { return ls[i].ID }, func(s *store.Store, places []int) []error {
		part, errs := s.Extend(ctx, pick(ls, places), lease)
		for k, end := range part {
			ends[places[k]] = end
		}
		return errs
	})
}

// Dead is as in backend.Queue.
func (q *Queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.split(len(bs), func(i int) string { return bs[i].ID }, func(s *store.Store, places []int) []error {
		return s.Dead(ctx, pick(bs, places))
	})
}

// Cancel is as in backend.Queue.
func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return q.byID(ids, func(s *store.Store, ids []string) []error { return s.Cancel(ctx, ids) })
}

// Redrive is as in backend.Queue.
func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return q.byID(ids, func(s *store.Store, ids []string) []error { return s.Redrive(ctx, ids) })
}

// DeleteDead is as in backend.Queue.
func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.byID(ids, func(s *store.Store, ids []string) []error { return s.DeleteDead(ctx, ids) })
}

func (q *Queue) byID(ids []string, do func(s *store.Store, ids []string) []error) []error {
	return q.split(len(ids), func(i int) string { return ids[i] }, func(s *store.Store, places []int) []error {
		return do(s, pick(ids, places))
	})
}

// Reschedule is as in backend.Queue.
func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.split(len(ms), func(i int) string { return ms[i].ID }, func(s *store.Store, places []int) []error {
		return s.Reschedule(ctx, pick(ms, places))
	})
}

// Get is as in backend.Queue.
func (q *Queue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	return infos, q.split(len(ids), func(i int) string { return ids[i] }, func(s *store.Store, places []int) []error {
		part, errs := s.Get(ctx, pick(ids, places))
		for k, info := range part {
			infos[places[k]] = info
		}
		return errs
	})
}

// all has each shard do something, and returns what they return in their order.
func all[T any](q *Queue, do func(k int, s *store.Store) (T, error)) ([]T, error) {
	values, errs := make([]T, len(q.shards)), make([]error, len(q.shards))
	var ended sync.WaitGroup
	for k, s := range q.shards {
		ended.Go(func() { values[k], errs[k] = do(k, s.Store) })
	}
	ended.Wait()
	return values, errors.Join(slices.CompactFunc(errs, func(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() })...)
}

// Purge is as in backend.Queue.
func (q *Queue) Purge(ctx context.Context) (removed int64, err error) {
	counts, err := all(q, func(_ int, s *store.Store) (int64, error) { return s.Purge(ctx) })
	for _, n := range counts {
		removed += n
	}
	return removed, err
}

// PauseAll is as in backend.Queue. After an error some shards may be paused.
func (q *Queue) PauseAll(ctx context.Context, p backend.Pause) error {
	_, err := all(q, func(_ int, s *store.Store) (none struct{}, err error) { return none, s.PauseAll(ctx, p) })
	return err
}

// ResumeAll is as in backend.Queue.
func (q *Queue) ResumeAll(ctx context.Context) error {
	return q.PauseAll(ctx, backend.Pause{Until: backend.EarliestDue})
}

// Paused returns the pause that ends last. A queue is paused as long as one of its shards is.
func (q *Queue) Paused(ctx context.Context) (paused bool, until time.Time, err error) {
	pauses, err := all(q, func(_ int, s *store.Store) (st backend.Stats, err error) {
		st.Paused, st.PausedUntil, err = s.Paused(ctx)
		return st, err
	})
	sum := sumOf(pauses)
	return sum.Paused, sum.PausedUntil, err
}

// Stats is as in backend.Queue. It counts each shard at a moment of its own.
func (q *Queue) Stats(ctx context.Context) (backend.Stats, error) {
	counts, err := all(q, func(_ int, s *store.Store) (backend.Stats, error) { return s.Stats(ctx) })
	if err != nil {
		return backend.Stats{}, err
	}
	return sumOf(counts), nil
}

func sumOf(counts []backend.Stats) (sum backend.Stats) {
	for _, st := range counts {
		sum.Scheduled += st.Scheduled
		sum.Ready += st.Ready
		sum.InFlight += st.InFlight
		sum.Dead += st.Dead
		if sum.HeadDue.IsZero() || !st.HeadDue.IsZero() && st.HeadDue.Before(sum.HeadDue) {
			sum.HeadDue = st.HeadDue
		}
		sum.OldestReady = max(sum.OldestReady, st.OldestReady)
		for i, n := range st.Due {
			sum.Due[i] += n
		}
		sum.DueEstimated = sum.DueEstimated || st.DueEstimated
		sum.Activity.Pushed += st.Activity.Pushed
		sum.Activity.Acked += st.Activity.Acked
		for i, n := range st.Activity.Lateness {
			sum.Activity.Lateness[i] += n
		}
		switch {
		case !st.Paused:
		case !sum.Paused || st.PausedUntil.IsZero() || !sum.PausedUntil.IsZero() && st.PausedUntil.After(sum.PausedUntil):
			sum.Paused, sum.PausedUntil = true, st.PausedUntil
		}
	}
	return sum
}

// Count adds to the activity of the first shard.
func (q *Queue) Count(ctx context.Context, a backend.Activity) error {
	return q.shards[0].Count(ctx, a)
}
