package verdict

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/delayq/delayq/backend"
)

// riverBackend runs a river.Client for each queue that somebody receives from. Its worker waits until the message is settled, and returns what river
// has for it: nil, an error with a time of its own, JobSnooze, JobCancel.
type riverBackend struct {
	handles
	pool     *pgxpool.Pool
	stations shared[*riverStation]
}

// Traits declare the scheduler's 5 s and the poll of 1 s behind it, and ids of the database's making.
func (b *riverBackend) Traits() backend.Traits {
	return backend.Traits{
		Name: "river", Resolution: time.Microsecond, Sweep: 6 * time.Second, Leases: backend.InConnection,
		Lacks: backend.Lacking(
			backend.Rescheduling, backend.Counting, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing,
			backend.Ordering, backend.OwnIDs, backend.Deduplicating, backend.ChangingHeaders, backend.Transactions,
		),
	}
}

func (b *riverBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) {
		s := b.stations.join(name, b.newStation)
		return &riverQueue{closer: newCloser(), riverStation: s, key: name}, s.broken
	})
}

// newStation names the queue by a hash, since river takes few characters.
func (b *riverBackend) newStation(name string) *riverStation {
	sum := sha256.Sum256([]byte(name))
	s := &riverStation{bridge: newBridge(), backend: b, name: "q" + hex.EncodeToString(sum[:16]), retries: make(map[int64]time.Duration), waits: make(map[int64]chan struct{})}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{station: s})
	s.client, s.broken = river.NewClient(riverpgxv5.New(b.pool), &river.Config{
		Queues: map[string]river.QueueConfig{s.name: {MaxWorkers: 64}}, Workers: workers,
		JobTimeout: -1, Logger: slog.New(slog.DiscardHandler),
	})
	return s
}

type riverStation struct {
	*bridge
	backend *riverBackend
	name    string
	client  *river.Client[pgx.Tx]
	broken  error

	starting sync.Mutex
	started  bool
	unlisten func()
	listener sync.WaitGroup

	noting  sync.Mutex
	retries map[int64]time.Duration // what NextRetry is to say
	waits   map[int64]chan struct{} // for river to have written down an outcome
}

// message is what jobs carry: river has no headers.
type message struct {
	Body    []byte            `json:"body"`
	Headers map[string][]byte `json:"headers,omitempty"`
}

func (message) Kind() string { return "message" }

type riverWorker struct {
	river.WorkerDefaults[message]
	station *riverStation
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[message]) error {
	d := backend.Delivery{
		ID: strconv.FormatInt(job.ID, 10), Body: job.Args.Body, Headers: plain(job.Args.Headers), Due: job.ScheduledAt, Attempt: job.Attempt,
	}
	switch o := w.station.handle(ctx, d); o.word {
	case done:
		return nil
	case untouched, unseen:
		return river.JobSnooze(0)
	case dead:
		return river.JobCancel(errors.New(o.reason))
	default:
		w.station.noting.Lock()
		defer w.station.noting.Unlock()
		w.station.retries[job.ID] = o.delay
		return errors.New("given back")
	}
}

func (w *riverWorker) NextRetry(job *river.Job[message]) time.Time {
	w.station.noting.Lock()
	defer w.station.noting.Unlock()
	return ceil(time.Now().Add(w.station.retries[job.ID]), time.Microsecond)
}

// raw has values that JSON keeps byte for byte.
func raw(headers map[string]string) map[string][]byte {
	if len(headers) == 0 {
		return nil
	}
	m := make(map[string][]byte, len(headers))
	for k, v := range headers {
		m[k] = []byte(v)
	}
	return m
}

func plain(headers map[string][]byte) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	m := make(map[string]string, len(headers))
	for k, v := range headers {
		m[k] = string(v)
	}
	return m
}

// start starts the client, and a listener for what it writes down.
func (s *riverStation) start() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.started {
		return nil
	}
	events, cancel := s.client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled, river.EventKindJobSnoozed)
	s.unlisten = cancel
	s.listener.Go(func() {
		for e := range events {
			s.noting.Lock()
			if c := s.waits[e.Job.ID]; c != nil {
				close(c)
				delete(s.waits, e.Job.ID)
			}
			s.noting.Unlock()
		}
	})
	s.started = true
	return s.client.Start(context.Background())
}

func (s *riverStation) stop() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	defer close(s.gone)
	if !s.started {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := s.client.StopAndCancel(ctx)
	s.unlisten()
	s.listener.Wait()
	return err
}

type riverQueue struct {
	backend.Unsupported
	closer
	*riverStation
	key string
}

var _ backend.Queue = (*riverQueue)(nil)

func (q *riverQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	i := -1
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		i++
		args := message{Body: m.Body, Headers: raw(m.Headers)}
		inserted, err := q.client.Insert(ctx, args, &river.InsertOpts{Queue: q.name, MaxAttempts: math.MaxInt16, ScheduledAt: microsecondDue(m)})
		if err == nil {
			ms[i].ID = strconv.FormatInt(inserted.Job.ID, 10)
		}
		return err
	})
}

// microsecondDue rounds up to what a timestamp holds. The zero time is now.
func microsecondDue(m backend.Message) time.Time {
	switch {
	case !m.Due.IsZero():
		return ceil(m.Due, time.Microsecond)
	case m.Delay == 0:
		return time.Time{}
	default:
		return ceil(time.Now().Add(m.Delay), time.Microsecond)
	}
}

func (q *riverQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	if err := q.start(); err != nil {
		return nil, err
	}
	return q.receive(ctx, &q.closer, limit, lease)
}

// settle has the worker return, and waits until river has written that down, which it does in batches.
func riverSettle[T any](ctx context.Context, q *riverQueue, items []T, what func(T) (backend.Lease, outcome)) []error {
	return each(ctx, &q.closer, items, func(item T) error {
		lease, o := what(item)
		id, written := riverID(lease.ID), make(chan struct{})
		q.noting.Lock()
		q.waits[id] = written
		q.noting.Unlock()
		if _, err := q.leave(lease, o); err != nil {
			return err
		}
		select {
		case <-written:
			return nil
		case <-time.After(10 * time.Second):
			return fmt.Errorf("river has not told of the end of job %d", id)
		}
	})
}

func riverID(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64) // 0 is no job's
	return n
}

func (q *riverQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return riverSettle(ctx, q, ls, acked)
}

func (q *riverQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return riverSettle(ctx, q, rs, returned)
}

func (q *riverQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return riverSettle(ctx, q, bs, deadLettered)
}

func (q *riverQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (time.Time, error) { return q.extend(l, lease) })
}

// is returns nil for a job in one of the states. river itself does the call in further states.
func (q *riverQueue) is(ctx context.Context, id string, states ...rivertype.JobState) error {
	job, err := q.client.JobGet(ctx, riverID(id))
	if err != nil {
		return riverAnswer(err)
	}
	for _, s := range states {
		if job.State == s {
			return nil
		}
	}
	if job.State == rivertype.JobStateRunning {
		return backend.ErrInFlight
	}
	return backend.ErrNotFound
}

func riverAnswer(err error) error {
	switch {
	case errors.Is(err, rivertype.ErrNotFound):
		return backend.ErrNotFound
	case errors.Is(err, rivertype.ErrJobRunning):
		return backend.ErrInFlight
	}
	return err
}

// Cancel is JobDelete, for jobs that wait.
func (q *riverQueue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		if err := q.is(ctx, id, rivertype.JobStateAvailable, rivertype.JobStateScheduled, rivertype.JobStateRetryable); err != nil {
			return err
		}
		_, err := q.client.JobDelete(ctx, riverID(id))
		return riverAnswer(err)
	})
}

// ListDead lists cancelled jobs by the time at which they were.
func (q *riverQueue) ListDead(ctx context.Context, cursor string, limit int) (ls []backend.DeadLetter, next string, err error) {
	if err := q.ready(ctx); err != nil {
		return nil, "", err
	}
	params := river.NewJobListParams().Queues(q.name).States(rivertype.JobStateCancelled).First(limit).
		OrderBy(river.JobListOrderByFinalizedAt, river.SortOrderAsc)
	if cursor != "" {
		var c river.JobListCursor
		if err := c.UnmarshalText([]byte(cursor)); err != nil {
			return nil, "", backend.Invalid("cursor", cursor, "one that a listing returned")
		}
		params = params.After(&c)
	}
	page, err := q.client.JobList(ctx, params)
	if err != nil {
		return nil, "", err
	}
	for _, job := range page.Jobs {
		l, err := riverLetter(job)
		if err != nil {
			return nil, "", err
		}
		ls = append(ls, l)
	}
	if len(page.Jobs) == limit {
		text, err := page.LastCursor.MarshalText()
		return ls, string(text), err
	}
	return ls, "", nil
}

func riverLetter(job *rivertype.JobRow) (l backend.DeadLetter, err error) {
	var m message
	if err := json.Unmarshal(job.EncodedArgs, &m); err != nil {
		return l, fmt.Errorf("reading the arguments of job %d: %w", job.ID, err)
	}
	l = backend.DeadLetter{ID: strconv.FormatInt(job.ID, 10), State: backend.StateDead, Body: m.Body, Headers: plain(m.Headers), Due: job.ScheduledAt, Attempts: job.Attempt}
	if n := len(job.Errors); n > 0 {
		l.Reason = strings.TrimPrefix(job.Errors[n-1].Error, "JobCancelError: ")
	}
	if job.FinalizedAt != nil {
		l.Died = *job.FinalizedAt
	}
	return l, nil
}

func (q *riverQueue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

// Redrive is JobRetry, for cancelled jobs alone.
func (q *riverQueue) Redrive(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		if q.is(ctx, id, rivertype.JobStateCancelled) != nil {
			return backend.ErrNotFound
		}
		_, err := q.client.JobRetry(ctx, riverID(id))
		return riverAnswer(err)
	})
}

func (q *riverQueue) DeleteDead(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		if q.is(ctx, id, rivertype.JobStateCancelled) != nil {
			return backend.ErrNotFound
		}
		_, err := q.client.JobDelete(ctx, riverID(id))
		return riverAnswer(err)
	})
}

func (q *riverQueue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	return trimDead(ctx, q, r)
}

// Close stops the client when no other handle is open.
func (q *riverQueue) Close() error {
	return q.closeOnce(func() error { return q.backend.stations.leave(q.key) })
}
