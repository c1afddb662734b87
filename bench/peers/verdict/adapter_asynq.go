package verdict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/delayq/delayq/backend"
)

// asynqBackend runs an asynq.Server for each queue that somebody receives from. Its handler waits until the message is settled, and returns what asynq has for
// it: nil, an error with a delay of its own, one that is no failure, SkipRetry.
type asynqBackend struct {
	handles
	addr     string
	stations shared[*asynqStation]

	// interval is between looks at what is due and at an empty queue: 0 for asynq's 5 s and 1 s.
	interval time.Duration

	// roundUp has the caller round due times up to whole seconds.
	roundUp bool
}

// Traits declare what its documentation says: intervals, and nothing of an order. Ids are asynq's TaskID.
func (b *asynqBackend) Traits() backend.Traits {
	t := backend.Traits{
		Name: "asynq", Resolution: time.Second, Sweep: 5*time.Second + 3*time.Second/2,
		Lacks: backend.Lacking(
			backend.Rescheduling, backend.Counting, backend.Peeking, backend.Getting, backend.Purging, backend.Pausing,
			backend.Ordering, backend.ChangingHeaders, backend.UniqueWindows, backend.Replacing, backend.Transactions,
		),
		Leases: backend.InConnection,
	}
	if b.interval > 0 {
		t.Sweep = 5 * b.interval / 2 // an empty queue is looked at after up to one and a half
	}
	return t
}

func (b *asynqBackend) Open(ctx context.Context, name string, _ backend.Options) (backend.Queue, error) {
	return b.add(ctx, func() (backend.Queue, error) {
		return &asynqQueue{closer: newCloser(), asynqStation: b.stations.join(name, b.newStation)}, nil
	})
}

func (b *asynqBackend) newStation(name string) *asynqStation {
	opt := asynq.RedisClientOpt{Addr: b.addr}
	return &asynqStation{bridge: newBridge(), backend: b, name: name, client: asynq.NewClient(opt), inspector: asynq.NewInspector(opt)}
}

type asynqStation struct {
	*bridge
	backend   *asynqBackend
	name      string
	client    *asynq.Client
	inspector *asynq.Inspector

	starting sync.Mutex
	server   *asynq.Server // from the first Receive on
}

func (q *asynqStation) stop() error {
	q.starting.Lock()
	defer q.starting.Unlock()
	if q.server != nil {
		q.server.Shutdown()
	}
	close(q.gone)
	return errors.Join(q.client.Close(), q.inspector.Close())
}

type asynqQueue struct {
	backend.Unsupported
	closer
	*asynqStation
}

var _ backend.Queue = (*asynqQueue)(nil)

func (q *asynqQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return each(ctx, &q.closer, ms, func(m backend.Message) error {
		opts := []asynq.Option{asynq.Queue(q.name), asynq.TaskID(m.ID), asynq.MaxRetry(math.MaxInt32), q.due(m)}
		_, err := q.client.EnqueueContext(ctx, asynq.NewTaskWithHeaders("message", m.Body, m.Headers), opts...)
		if errors.Is(err, asynq.ErrTaskIDConflict) {
			return backend.ErrDuplicate
		}
		return err
	})
}

func (q *asynqStation) due(m backend.Message) asynq.Option {
	switch {
	case m.Due.IsZero() && (m.Delay == 0 || !q.backend.roundUp):
		return asynq.ProcessIn(m.Delay)
	case m.Due.IsZero():
		return asynq.ProcessAt(ceil(time.Now().Add(m.Delay), time.Second))
	case q.backend.roundUp:
		return asynq.ProcessAt(ceil(m.Due, time.Second))
	default:
		return asynq.ProcessAt(m.Due)
	}
}

// ceil rounds up.
func ceil(t time.Time, grain time.Duration) time.Time {
	if cut := t.Truncate(grain); cut.Before(t) {
		return cut.Add(grain)
	}
	return t
}

func (q *asynqQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.ready(ctx); err != nil {
		return nil, err
	}
	if err := q.start(); err != nil {
		return nil, err
	}
	return q.receive(ctx, &q.closer, limit, lease)
}

// start starts the server, which from then on has up to 64 tasks in handlers.
func (q *asynqStation) start() error {
	q.starting.Lock()
	defer q.starting.Unlock()
	if q.server != nil {
		return nil
	}
	q.server = asynq.NewServer(asynq.RedisClientOpt{Addr: q.backend.addr}, asynq.Config{
		Concurrency: 64, Queues: map[string]int{q.name: 1}, LogLevel: asynq.FatalLevel, ShutdownTimeout: 100 * time.Millisecond,
		DelayedTaskCheckInterval: q.backend.interval, TaskCheckInterval: q.backend.interval,
		RetryDelayFunc: q.retryDelay, IsFailure: isFailure,
	})
	return q.server.Start(asynq.HandlerFunc(q.work))
}

func (q *asynqStation) work(ctx context.Context, task *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	retried, _ := asynq.GetRetryCount(ctx)
	o := q.handle(ctx, backend.Delivery{ID: id, Body: task.Payload(), Headers: task.Headers(), Attempt: retried + 1})
	if o.word == done {
		return nil
	}
	return asynqError{o}
}

// asynqError is what the handler returns. Where the server has stopped, asynq takes no notice and puts the task back.
type asynqError struct{ outcome }

func (e asynqError) Error() string { return e.reason }

func (e asynqError) Is(target error) bool { return target == asynq.SkipRetry && e.word == dead }

// isFailure tells asynq what counts as an attempt.
func isFailure(err error) bool {
	var e asynqError
	return !errors.As(err, &e) || e.word != untouched
}

func (q *asynqStation) retryDelay(_ int, err error, _ *asynq.Task) time.Duration {
	var e asynqError
	errors.As(err, &e)
	if !q.backend.roundUp || e.delay == 0 {
		return e.delay
	}
	now := time.Now()
	return ceil(now.Add(e.delay).Add(10*time.Millisecond), time.Second).Sub(now) // asynq adds it to a later now
}

// written waits until asynq has stored what the handler returned, which it does by itself and tells nobody.
func (q *asynqStation) written(v *visit) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) { // ended by the condition
		task, err := q.inspector.GetTaskInfo(q.name, v.delivery.ID)
		if err != nil || task.State != asynq.TaskStateActive || task.Retried >= v.delivery.Attempt {
			return
		}
	}
}

func (q *asynqQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return settles(ctx, &q.closer, q.bridge, ls, acked, q.written)
}

func (q *asynqQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	return settles(ctx, &q.closer, q.bridge, rs, returned, q.written)
}

func (q *asynqQueue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return settles(ctx, &q.closer, q.bridge, bs, deadLettered, q.written)
}

func (q *asynqQueue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return extends(ctx, &q.closer, ls, func(l backend.Lease) (time.Time, error) { return q.extend(l, lease) })
}

// Cancel is DeleteTask, but for dead letters, which are no longer waiting.
func (q *asynqQueue) Cancel(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		task, err := q.inspector.GetTaskInfo(q.name, id)
		switch {
		case err == nil && task.State == asynq.TaskStateArchived:
			return backend.ErrNotFound
		case err == nil:
			err = q.inspector.DeleteTask(q.name, id)
		}
		return asynqAnswer(err)
	})
}

func asynqAnswer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return backend.ErrNotFound
	case strings.Contains(err.Error(), "active state"):
		return backend.ErrInFlight
	}
	return fmt.Errorf("asking asynq's inspector: %w", err)
}

func (q *asynqQueue) archived(id string) error {
	task, err := q.inspector.GetTaskInfo(q.name, id)
	if err == nil && task.State != asynq.TaskStateArchived {
		return backend.ErrNotFound
	}
	return asynqAnswer(err)
}

func (q *asynqQueue) ListDead(ctx context.Context, cursor string, limit int) (ls []backend.DeadLetter, next string, err error) {
	if err := q.ready(ctx); err != nil {
		return nil, "", err
	}
	page := 1
	if cursor != "" {
		if page, err = strconv.Atoi(cursor); err != nil {
			return nil, "", backend.Invalid("cursor", cursor, "one that a listing returned")
		}
	}
	tasks, err := q.inspector.ListArchivedTasks(q.name, asynq.PageSize(limit), asynq.Page(page))
	if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
		return nil, "", fmt.Errorf("listing archived tasks: %w", err)
	}
	for _, t := range tasks {
		ls = append(ls, backend.DeadLetter{
			ID: t.ID, State: backend.StateDead, Body: t.Payload, Headers: t.Headers, Attempts: t.Retried + 1, Reason: t.LastErr, Died: t.LastFailedAt,
		})
	}
	if len(tasks) == limit {
		next = strconv.Itoa(page + 1)
	}
	return ls, next, nil
}

func (q *asynqQueue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

// Redrive is RunTask, for archived tasks alone.
func (q *asynqQueue) Redrive(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		if err := q.archived(id); err != nil {
			return err
		}
		return asynqAnswer(q.inspector.RunTask(q.name, id))
	})
}

func (q *asynqQueue) DeleteDead(ctx context.Context, ids []string) []error {
	return each(ctx, &q.closer, ids, func(id string) error {
		if err := q.archived(id); err != nil {
			return err
		}
		return asynqAnswer(q.inspector.DeleteTask(q.name, id))
	})
}

func (q *asynqQueue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	return trimDead(ctx, q, r)
}

// Close stops the server when no other handle is open.
func (q *asynqQueue) Close() error {
	return q.closeOnce(func() error { return q.backend.stations.leave(q.name) })
}
