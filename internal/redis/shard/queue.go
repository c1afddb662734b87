package shard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
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
	Config
	base   *store.Store // of the queue's own name, which has the note
	stores store.Config
	name   string
	given  clockwork.Clock // nil for the servers' own

	failed atomic.Bool   // the last look for changes
	closed chan struct{} // closed with the handle

	mu     sync.Mutex
	gens   []generation // changed as a whole
	read   time.Time    // when the note was read; zero before that
	unread time.Time    // when a push last looked for it in vain; zero once it was read
	split  time.Time    // since when this handle has known that generation 0 is not the newest
	turns  int          // how often something was looked at without a reason
	turn   int          // the shard that is then
	looked time.Time    // when one was
	busy   bool         // maintain runs
	again  bool         // the note has changed meanwhile
	late   error        // of a claim that was not waited for
}

var _ queue.Messages = (*Queue)(nil)

// Config holds the settings of a queue.
type Config struct {
	Calls *call.Group         // of the backend
	Log   *slog.Logger        // for what no method returns
	Poll  time.Duration       // so often one shard is looked at without a reason
	Clock clockwork.Clock     // nil for the servers' own
	Wake  func(due time.Time) // has the queue's handles claim then

	Follow, Unfollow func(channel string) // have them woken by one more channel, and not any more
}

// New returns the queue of a name, whose store notes its shards. It changes nothing. Where the queue has no
// shards, it is the one store until [Queue.Begin], or until a push or a claim finds out that another program
// has split the queue.
func New(ctx context.Context, c Config, stores store.Config, name string) (*Queue, error) {
	q := &Queue{Config: c, base: store.New(stores, name, c.Clock), stores: stores, name: name, given: c.Clock, closed: make(chan struct{})}
	if c.Clock == nil {
		q.Clock = clockwork.NewRealClock()
	}
	q.take([]generation{{number: 0}}, []int{1})
	note, err := q.base.Note(ctx)
	if err == nil && note != "" {
		return q, q.adopt(ctx, note)
	}
	if err != nil { // where the server does not reply, the calls find out
		q.read = time.Time{}
	}
	return q, nil
}

// Begin splits the queue into n shards, where it has none yet and n is not 1.
func (q *Queue) Begin(ctx context.Context, n int) error {
	if n == 1 || q.whole() == nil {
		return nil
	}
	return q.begin(ctx, n)
}

// Close says that the handle is closed.
func (q *Queue) Close() { close(q.closed) }

// whole returns the store of a queue without shards, or nil.
func (q *Queue) whole() *store.Store {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.gens) == 1 && q.gens[0].number == 0 {
		return q.base
	}
	return nil
}

// Channel is where a change of the note is announced.
func (q *Queue) Channel() string { return q.base.Channel() }

// Channels are those of all shards.
func (q *Queue) Channels() (all []string) {
	for _, s := range q.shards() {
		all = append(all, s.Channel())
	}
	return all
}

// shards returns those of all generations.
func (q *Queue) shards() []*shard {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shardsLocked()
}

func (q *Queue) shardsLocked() (all []*shard) {
	for _, g := range q.gens {
		all = append(all, g.shards...)
	}
	return all
}

// current reads the note, and returns the shards of all generations.
func (q *Queue) current(ctx context.Context) ([]*shard, error) {
	err := q.refresh(ctx)
	return q.shards(), err
}

// byID does something in one generation after the other with those of n items with which it has not
// succeeded before: with those whose error is next. When all have been asked it looks whether there is
// a newer one.
func (q *Queue) byID(ctx context.Context, n int, id func(i int) string, next error, do func(s *shard, places []int) []error) []error {
	errs, rest := make([]error, n), make([]int, n)
	for i := range rest {
		rest[i] = i
	}
	asked := make(map[int64]bool)
	for {
		for _, g := range q.generations() {
			if asked[g.number] {
				continue
			}
			asked[g.number] = true
			g.split(rest, id, errs, do)
			rest = slices.DeleteFunc(rest, func(i int) bool { return !errors.Is(errs[i], next) })
			if len(rest) == 0 {
				return backend.Each(n, func(i int) error { return errs[i] })
			}
		}
		if q.whole() != nil && !errors.Is(next, store.ErrSplit) {
			return backend.Each(n, func(i int) error { return errs[i] })
		}
		err := q.refresh(ctx)
		if err != nil {
			for _, i := range rest {
				errs[i] = err
			}
		}
		if err != nil || !q.hasMoreThan(asked) {
			return backend.Each(n, func(i int) error { return errs[i] })
		}
	}
}

// byLease does something with n leases, each in its generation.
func (q *Queue) byLease(ctx context.Context, n int, lease func(i int) backend.Lease, do func(s *shard, places []int) []error) []error {
	errs := backend.FailAll(n, backend.ErrLeaseLost) // as those of an ended generation are
	id := func(i int) string { return lease(i).ID }
	asked, known := make(map[int64]bool), make([]bool, n)
	for {
		for _, g := range q.generations() {
			var places []int
			for i := range n {
				if !asked[g.number] && byte(lease(i).Token.Hi>>56) == g.mark() && errors.Is(errs[i], backend.ErrLeaseLost) {
					places, known[i] = append(places, i), true
				}
			}
			asked[g.number] = true
			g.split(places, id, errs, do)
		}
		if !slices.Contains(known, false) {
			return backend.Each(n, func(i int) error { return errs[i] })
		}
		err := q.refresh(ctx)
		if err != nil {
			for i := range n {
				if !known[i] {
					errs[i] = err
				}
			}
		}
		if err != nil || !q.hasMoreThan(asked) {
			return backend.Each(n, func(i int) error { return errs[i] })
		}
	}
}

// hasMoreThan reports whether there are generations that were not asked. Another call may have found them.
func (q *Queue) hasMoreThan(asked map[int64]bool) bool {
	return slices.ContainsFunc(q.generations(), func(g generation) bool { return !asked[g.number] })
}

// mark is in the highest byte of the tokens of leases, which no store uses. A lease must not be looked for
// in another generation: a repeated ack that finds no message takes it for done.
func (g generation) mark() byte { return byte(g.number) }

// split has each shard do its part of the items at some places. do returns an error for each, or nil.
func (g generation) split(places []int, id func(i int) string, errs []error, do func(s *shard, places []int) []error) {
	switch {
	case len(places) == 0:
		return
	case len(g.shards) == 1:
		g.shards[0].part(places, errs, do)
		return
	}
	parts := make(map[*shard][]int)
	for _, i := range places {
		s := g.shards[of(id(i), len(g.shards))]
		parts[s] = append(parts[s], i)
	}
	var ended sync.WaitGroup
	for s, places := range parts {
		if len(parts) == 1 {
			s.part(places, errs, do)
			return
		}
		ended.Go(func() { s.part(places, errs, do) })
	}
	ended.Wait()
}

func (s *shard) part(places []int, errs []error, do func(s *shard, places []int) []error) {
	outcomes := do(s, places)
	for k, i := range places {
		if errs[i] = nil; outcomes != nil {
			errs[i] = outcomes[k]
		}
	}
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
	if q.whole() == nil { // which refuses pushes itself
		if err := q.beforePush(ctx); err != nil {
			return backend.FailAll(len(ms), err)
		}
	}
	errs := q.push(ctx, ms)
	var refused []int
	for i, err := range errs {
		if errors.Is(err, store.ErrSplit) {
			refused = append(refused, i)
		}
	}
	if len(refused) == 0 || q.whole() != nil {
		return errs
	}
	// A failover has lost the note of the newest shards, and no program knows them any more.
	gens := q.generations()
	again := backend.FailAll(len(refused), q.Reshard(ctx, len(gens[len(gens)-1].shards)))
	if again[0] == nil {
		again = q.push(ctx, pick(ms, refused))
	}
	for k, i := range refused {
		if errs[i] = nil; again != nil {
			errs[i] = again[k]
		}
	}
	return backend.Each(len(ms), func(i int) error { return errs[i] })
}

func (q *Queue) push(ctx context.Context, ms []backend.Message) []error {
	return q.byID(ctx, len(ms), func(i int) string { return ms[i].ID }, store.ErrSplit, func(s *shard, places []int) []error {
		part := pick(ms, places)
		errs := s.Schedule(ctx, part)
		q.pushed(s, part)
		return errs
	})
}

// Ack is as in backend.Queue.
func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.byLease(ctx, len(ls), func(i int) backend.Lease { return ls[i] }, func(s *shard, places []int) []error {
		return s.Ack(ctx, pick(ls, places))
	})
}

// Nack is as in backend.Queue.
func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.byLease(ctx, len(rs), func(i int) backend.Lease { return rs[i].Lease }, func(s *shard, places []int) []error {
		return s.Nack(ctx, pick(rs, places))
	})
}

// Extend is as in backend.Queue.
func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	return ends, q.byLease(ctx, len(ls), func(i int) backend.Lease { return ls[i] }, func(s *shard, places []int) []error {
		part, errs := s.Extend(ctx, pick(ls, places), lease)
		for k, end := range part {
			ends[places[k]] = end
		}
		return errs
	})
}

// Dead is as in backend.Queue.
func (q *Queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.byLease(ctx, len(bs), func(i int) backend.Lease { return bs[i].Lease }, func(s *shard, places []int) []error {
		return s.Dead(ctx, pick(bs, places))
	})
}

// Cancel is as in backend.Queue.
func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return q.find(ctx, ids, func(s *store.Store, ids []string) []error { return s.Cancel(ctx, ids) })
}

// Redrive is as in backend.Queue.
func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return q.find(ctx, ids, func(s *store.Store, ids []string) []error { return s.Redrive(ctx, ids) })
}

// DeleteDead is as in backend.Queue.
func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.find(ctx, ids, func(s *store.Store, ids []string) []error { return s.DeleteDead(ctx, ids) })
}

// find does something with the messages of some ids.
func (q *Queue) find(ctx context.Context, ids []string, do func(s *store.Store, ids []string) []error) []error {
	if _, err := q.plain(ctx); err != nil {
		return backend.FailAll(len(ids), err)
	}
	return q.byID(ctx, len(ids), func(i int) string { return ids[i] }, backend.ErrNotFound, func(s *shard, places []int) []error {
		return do(s.Store, pick(ids, places))
	})
}

// Reschedule is as in backend.Queue.
func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	if _, err := q.plain(ctx); err != nil {
		return backend.FailAll(len(ms), err)
	}
	return q.byID(ctx, len(ms), func(i int) string { return ms[i].ID }, backend.ErrNotFound, func(s *shard, places []int) []error {
		return s.Reschedule(ctx, pick(ms, places))
	})
}

// Get is as in backend.Queue.
func (q *Queue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	if _, err := q.plain(ctx); err != nil {
		return infos, backend.FailAll(len(ids), err)
	}
	return infos, q.byID(ctx, len(ids), func(i int) string { return ids[i] }, backend.ErrNotFound, func(s *shard, places []int) []error {
		part, errs := s.Get(ctx, pick(ids, places))
		for k, info := range part {
			infos[places[k]] = info
		}
		return errs
	})
}

// all has each shard do something, and returns what they return in their order.
func all[T any](shards []*shard, do func(k int, s *store.Store) (T, error)) ([]T, error) {
	values, errs := make([]T, len(shards)), make([]error, len(shards))
	var ended sync.WaitGroup
	for k, s := range shards {
		ended.Go(func() { values[k], errs[k] = do(k, s.Store) })
	}
	ended.Wait()
	return values, errors.Join(slices.CompactFunc(errs, func(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() })...)
}

// Purge is as in backend.Queue.
func (q *Queue) Purge(ctx context.Context) (removed int64, err error) {
	shards, err := q.current(ctx)
	if err != nil {
		return 0, err
	}
	counts, err := all(q.withOwn(shards), func(_ int, s *store.Store) (int64, error) { return s.Purge(ctx) })
	for _, n := range counts {
		removed += n
	}
	return removed, err
}

// withOwn adds the queue's own store, which has the activity, where it is no shard.
func (q *Queue) withOwn(shards []*shard) []*shard {
	if shards[0].Store == q.base {
		return shards
	}
	return append(shards, &shard{Store: q.base})
}

// PauseAll is as in backend.Queue. The queue's own store has the pause too, and has it first, also where it is no
// shard: new shards get it from there. After an error some shards may be paused.
func (q *Queue) PauseAll(ctx context.Context, p backend.Pause) error {
	if err := q.base.PauseAll(ctx, p); err != nil {
		return err
	}
	each := func(shards []*shard, p backend.Pause) error {
		_, err := all(shards, func(_ int, s *store.Store) (none struct{}, err error) {
			if s == q.base {
				return none, nil
			}
			return none, s.PauseAll(ctx, p)
		})
		return err
	}
	for shards := q.shards(); ; {
		if err := each(shards, p); err != nil {
			return err
		}
		now, err := q.current(ctx)
		if err != nil {
			return err
		}
		if err := each(without(shards, now), resumed); err != nil { // they had ended: nothing else would find their pause
			return err
		}
		if len(without(now, shards)) == 0 {
			return nil
		}
		shards = now
	}
}

// resumed is a pause that has ended.
var resumed = backend.Pause{Until: backend.EarliestDue}

// without returns the shards that are not among others.
func without(shards, others []*shard) []*shard {
	return slices.DeleteFunc(slices.Clone(shards), func(s *shard) bool { return slices.Contains(others, s) })
}

// ResumeAll is as in backend.Queue.
func (q *Queue) ResumeAll(ctx context.Context) error {
	return q.PauseAll(ctx, resumed)
}

// Paused returns the pause that ends last. A queue is paused as long as one of its shards is.
func (q *Queue) Paused(ctx context.Context) (paused bool, until time.Time, err error) {
	shards, err := q.current(ctx)
	if err != nil {
		return false, time.Time{}, err
	}
	pauses, err := all(shards, func(_ int, s *store.Store) (st backend.Stats, err error) {
		st.Paused, st.PausedUntil, err = s.Paused(ctx)
		return st, err
	})
	sum := sumOf(pauses)
	return sum.Paused, sum.PausedUntil, err
}

// Stats is as in backend.Queue. It counts each shard at a moment of its own.
func (q *Queue) Stats(ctx context.Context) (backend.Stats, error) {
	switch s, err := q.plain(ctx); {
	case err != nil:
		return backend.Stats{}, err
	case s != nil:
		return s.Stats(ctx)
	}
	shards, err := q.current(ctx)
	if err != nil {
		return backend.Stats{}, err
	}
	shards = q.withOwn(shards)
	counts, err := all(shards, func(_ int, s *store.Store) (backend.Stats, error) { return s.Stats(ctx) })
	if err != nil {
		return backend.Stats{}, err
	}
	if last := len(counts) - 1; shards[0].Store != q.base { // it has the activity, and no message
		counts[last] = backend.Stats{Activity: counts[last].Activity}
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

// Count adds to the queue's activity.
func (q *Queue) Count(ctx context.Context, a backend.Activity) error { return q.base.Count(ctx, a) }
