package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

const patience = queuetest.Patience

var (
	silent      = queuetest.Silent
	newQueue    = queuetest.New
	receive     = queuetest.Receive
	stats       = queuetest.Stats
	must        = queuetest.Must
	wantIs      = queuetest.WantIs
	wantInvalid = queuetest.WantInvalid
	eventually  = queuetest.Eventually
	bubble      = queuetest.Bubble
)

type journal = queuetest.Journal

// each is queuetest.Cases for values that are their own names.
func each[C any](t *testing.T, all []C, run func(*testing.T, C)) {
	t.Helper()
	named := make(map[string]C)
	for _, c := range all {
		named[fmt.Sprint(c)] = c
	}
	queuetest.Cases(t, named, run)
}

// newPair returns a queue on a seam, and another one on the same store without the seam.
func newPair(t *testing.T, s *seam, opts ...delayq.Option) (q, witness delayq.Queue) {
	t.Helper()
	return newQueue(t, append(opts, s.option())...), newQueue(t, delayq.WithBackend(s.Backend))
}

func push(t *testing.T, q delayq.Queue, opts ...delayq.PushOption) string {
	t.Helper()
	id, err := q.Push(t.Context(), []byte("body"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func pushMany(t *testing.T, q delayq.Queue, n int, opts ...delayq.PushOption) {
	t.Helper()
	for range n {
		push(t, q, opts...)
	}
}

// pushDead pushes a message and makes it a dead letter.
func pushDead(t *testing.T, q delayq.Queue, id, reason string) {
	t.Helper()
	push(t, q, delayq.ID(id))
	d := receive(t, q)
	if d.ID != id {
		t.Fatalf("received %s, want %s", d.ID, id)
	}
	must(t, d.DeadLetter(t.Context(), reason))
}

// wantCounts checks the counts of Stats, and leaves out what follows from due times.
func wantCounts(t *testing.T, q delayq.Queue, want delayq.Stats) {
	t.Helper()
	got := stats(t, q)
	got.HeadDue, got.OldestReady, got.Due = time.Time{}, 0, delayq.DueHistogram{}
	if got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

func deadLetters(t *testing.T, q delayq.Queue) (letters []delayq.DeadLetter) {
	t.Helper()
	for l, err := range q.Dead().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, l)
	}
	return letters
}

// A seam is a memory backend with a place to put faults between it and the queue: the rest is
// the real thing. It notes the sizes of the calls.
type seam struct {
	backend.Backend

	// before runs ahead of each call of the store; its error is returned instead of calling.
	before func(ctx context.Context, op string) error
	// after runs when the call has been done.
	after func(op string)
	// traits changes the backend's promises.
	traits func(*backend.Traits)
	// received changes what Receive returns.
	received func([]backend.Delivery)
	// makesIDs has the store assign the ids.
	makesIDs bool
	// refused is what the queue was opened with.
	refused func()

	mu    sync.Mutex
	sizes map[string][]int
}

func newSeam() *seam { return &seam{Backend: memory.New(), sizes: make(map[string][]int)} }

func (s *seam) option() delayq.Option { return delayq.WithBackend(s) }

// calls returns how many calls of an operation there were, and the size of the largest.
func (s *seam) calls(op string) (n, largest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sizes[op]), slices.Max(append(s.sizes[op], 0))
}

// failing has an operation of the store fail.
func failing(op string) func(context.Context, string) error {
	return func(_ context.Context, got string) error {
		if got == op {
			return errStore
		}
		return nil
	}
}

// once has an operation of the store fail the first time.
func once(op string) func(context.Context, string) error {
	var failed sync.Once
	return func(_ context.Context, got string) (err error) {
		if got == op {
			failed.Do(func() { err = errStore })
		}
		return err
	}
}

// later has an operation of the store fail after the first time.
func later(op string) func(context.Context, string) error {
	calls := 0
	return func(_ context.Context, got string) error {
		if got != op {
			return nil
		}
		if calls++; calls > 1 {
			return errStore
		}
		return nil
	}
}

// hanging has an operation of the store give no reply.
func hanging(op string) func(context.Context, string) error {
	return func(ctx context.Context, got string) error {
		if got != op {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// slowFirst has the first call of an operation take as long before it is done.
func (s *seam) slowFirst(op string, d time.Duration) {
	s.before = func(_ context.Context, got string) error {
		if n, _ := s.calls(op); got == op && n == 1 {
			time.Sleep(d)
		}
		return nil
	}
}

// slowReply has the first call of an operation that is done take as long to return.
func (s *seam) slowReply(op string, d time.Duration) {
	var done atomic.Int64
	s.after = func(got string) {
		if got == op && done.Add(1) == 1 {
			time.Sleep(d)
		}
	}
}

func (s *seam) Traits() backend.Traits {
	tr := s.Backend.Traits()
	if s.traits != nil {
		s.traits(&tr)
	}
	return tr
}

// lacking declares that the backend has not those features either.
func lacking(fs ...backend.Feature) func(*backend.Traits) {
	return func(tr *backend.Traits) { tr.Lacks = tr.Lacks.With(fs...) }
}

// lackingOnly declares that the backend has all features but those, and is elsewhere.
func lackingOnly(fs ...backend.Feature) func(*backend.Traits) {
	return func(tr *backend.Traits) { tr.Lacks, tr.Calls = backend.Lacking(fs...), backend.RoundTrip }
}

func (s *seam) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := s.enter(ctx, "open", 1); err != nil {
		return nil, err
	}
	s.refused = o.Refused
	q, err := s.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return &seamQueue{Queue: q, s: s}, nil
}

func (s *seam) Close() error {
	return errors.Join(s.enter(context.Background(), "close backend", 1), s.Backend.Close())
}

func (s *seam) enter(ctx context.Context, op string, size int) error {
	s.mu.Lock()
	s.sizes[op] = append(s.sizes[op], size)
	s.mu.Unlock()
	if s.before == nil {
		return nil
	}
	return s.before(ctx, op)
}

func (s *seam) leave(op string) {
	if s.after != nil {
		s.after(op)
	}
}

// each runs a call on n messages.
func (s *seam) each(ctx context.Context, op string, n int, do func() []error) []error {
	if err := s.enter(ctx, op, n); err != nil {
		return backend.FailAll(n, err)
	}
	defer s.leave(op)
	return do()
}

type seamQueue struct {
	backend.Queue
	s *seam
}

func (q *seamQueue) Stats(ctx context.Context) (backend.Stats, error) {
	if err := q.s.enter(ctx, "stats", 1); err != nil {
		return backend.Stats{}, err
	}
	return q.Queue.Stats(ctx)
}

func (q *seamQueue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	if err := q.s.enter(ctx, "list dead", limit); err != nil {
		return nil, "", err
	}
	return q.Queue.ListDead(ctx, cursor, limit)
}

func (q *seamQueue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	if err := q.s.enter(ctx, "list dead", limit); err != nil {
		return nil, "", err
	}
	return q.Queue.ListDeadIDs(ctx, cursor, limit)
}

func (q *seamQueue) TrimDead(ctx context.Context, r backend.Retention) (int, bool, error) {
	if err := q.s.enter(ctx, "trim", 1); err != nil {
		return 0, false, err
	}
	defer q.s.leave("trim")
	return q.Queue.TrimDead(ctx, r)
}

func (q *seamQueue) Redrive(ctx context.Context, ids []string) []error {
	return q.s.each(ctx, "redrive", len(ids), func() []error { return q.Queue.Redrive(ctx, ids) })
}

func (q *seamQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.s.each(ctx, "schedule", len(ms), func() []error {
		for i := range ms {
			if q.s.makesIDs {
				ms[i].ID = fmt.Sprintf("made-%s", ms[i].Body)
			}
		}
		return q.Queue.Schedule(ctx, ms)
	})
}

func (q *seamQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.s.enter(ctx, "receive", limit); err != nil {
		return nil, err
	}
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if err == nil {
		q.s.leave("receive")
	}
	if q.s.received != nil {
		q.s.received(ds)
	}
	return ds, err
}

func (q *seamQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.s.each(ctx, "ack", len(ls), func() []error { return q.Queue.Ack(ctx, ls) })
}

func (q *seamQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.s.each(ctx, "nack", len(rs), func() []error { return q.Queue.Nack(ctx, rs) })
}

func (q *seamQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) (ends []time.Time, errs []error) {
	ends = make([]time.Time, len(ls))
	errs = q.s.each(ctx, "extend", len(ls), func() (errs []error) {
		ends, errs = q.Queue.Extend(ctx, ls, lease)
		return errs
	})
	return ends, errs
}

func (q *seamQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.s.each(ctx, "dead", len(bs), func() []error { return q.Queue.Dead(ctx, bs) })
}

func (q *seamQueue) Close() error {
	err := q.s.enter(context.Background(), "close", 1)
	return errors.Join(err, q.Queue.Close())
}
