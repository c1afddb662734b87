package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// queue is a queue whose fault replaces some of the functions of a sound one.
type queue struct {
	backend.Queue // the sound one
	backend       backend.Backend
	name          string
	options       backend.Options
	mu            sync.Mutex // guards the fault's own state

	schedule    func(context.Context, []backend.Message) []error
	receive     func(context.Context, int, time.Duration) ([]backend.Delivery, error)
	ack         func(context.Context, []backend.Lease) []error
	nack        func(context.Context, []backend.Return) []error
	extend      func(context.Context, []backend.Lease, time.Duration) ([]time.Time, []error)
	dead        func(context.Context, []backend.DeadLetterRequest) []error
	cancel      func(context.Context, []string) []error
	reschedule  func(context.Context, []backend.Move) []error
	stats       func(context.Context) (backend.Stats, error)
	get         func(context.Context, []string) ([]backend.MessageInfo, []error)
	peek        func(context.Context, string, int) ([]backend.Pending, string, error)
	purge       func(context.Context) (int64, error)
	pauseAll    func(context.Context, backend.Pause) error
	resumeAll   func(context.Context) error
	listDead    func(context.Context, string, int) ([]backend.DeadLetter, string, error)
	listDeadIDs func(context.Context, string, int) ([]string, string, error)
	redrive     func(context.Context, []string) []error
	deleteDead  func(context.Context, []string) []error
	trimDead    func(context.Context, backend.Retention) (int, bool, error)
	inTx        func(any) (backend.Queue, error)
	close       func() error
}

// use sets all functions to those of a sound queue.
func (q *queue) use(sound backend.Queue) {
	q.Queue = sound
	q.schedule, q.receive, q.ack, q.nack, q.extend, q.dead = sound.Schedule, sound.Receive, sound.Ack, sound.Nack, sound.Extend, sound.Dead
	q.cancel, q.reschedule, q.stats, q.peek, q.purge = sound.Cancel, sound.Reschedule, sound.Stats, sound.Peek, sound.Purge
	q.get = sound.Get
	q.listDead, q.listDeadIDs, q.redrive, q.deleteDead = sound.ListDead, sound.ListDeadIDs, sound.Redrive, sound.DeleteDead
	q.trimDead, q.inTx = sound.TrimDead, sound.InTx
	q.pauseAll, q.resumeAll, q.close = sound.PauseAll, sound.ResumeAll, sound.Close
}

func (q *queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.schedule(ctx, ms)
}

func (q *queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.receive(ctx, limit, lease)
}

func (q *queue) Ack(ctx context.Context, ls []backend.Lease) []error { return q.ack(ctx, ls) }

func (q *queue) Nack(ctx context.Context, rs []backend.Return) []error { return q.nack(ctx, rs) }

func (q *queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	return q.extend(ctx, ls, lease)
}

func (q *queue) Dead(ctx context.Context, rs []backend.DeadLetterRequest) []error {
	return q.dead(ctx, rs)
}

func (q *queue) Cancel(ctx context.Context, ids []string) []error { return q.cancel(ctx, ids) }

func (q *queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.reschedule(ctx, ms)
}

func (q *queue) Stats(ctx context.Context) (backend.Stats, error) { return q.stats(ctx) }

func (q *queue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	return q.get(ctx, ids)
}

func (q *queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	return q.peek(ctx, cursor, limit)
}

func (q *queue) Purge(ctx context.Context) (int64, error) { return q.purge(ctx) }

func (q *queue) PauseAll(ctx context.Context, p backend.Pause) error { return q.pauseAll(ctx, p) }

func (q *queue) ResumeAll(ctx context.Context) error { return q.resumeAll(ctx) }

func (q *queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return q.listDead(ctx, cursor, limit)
}

func (q *queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return q.listDeadIDs(ctx, cursor, limit)
}

func (q *queue) Redrive(ctx context.Context, ids []string) []error { return q.redrive(ctx, ids) }

func (q *queue) DeleteDead(ctx context.Context, ids []string) []error { return q.deleteDead(ctx, ids) }

func (q *queue) TrimDead(ctx context.Context, r backend.Retention) (int, bool, error) {
	return q.trimDead(ctx, r)
}

func (q *queue) InTx(tx any) (backend.Queue, error) { return q.inTx(tx) }

func (q *queue) Close() error { return q.close() }

// The functions on… change the arguments or the results of a method, one at a time, and hold q.mu
// meanwhile.

func (q *queue) onPush(change func(*backend.Message)) {
	q.schedule = func(ctx context.Context, ms []backend.Message) []error {
		return q.Queue.Schedule(ctx, changed(q, ms, change))
	}
}

func (q *queue) onAck(change func(*backend.Lease)) {
	q.ack = func(ctx context.Context, ls []backend.Lease) []error { return q.Queue.Ack(ctx, changed(q, ls, change)) }
}

func (q *queue) onNack(change func(*backend.Return)) {
	q.nack = func(ctx context.Context, rs []backend.Return) []error {
		return q.Queue.Nack(ctx, changed(q, rs, change))
	}
}

func (q *queue) onExtend(change func(*backend.Lease)) {
	q.extend = func(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
		return q.Queue.Extend(ctx, changed(q, ls, change), lease)
	}
}

func (q *queue) onDead(change func(*backend.DeadLetterRequest)) {
	q.dead = func(ctx context.Context, rs []backend.DeadLetterRequest) []error {
		return q.Queue.Dead(ctx, changed(q, rs, change))
	}
}

func (q *queue) onMove(change func(*backend.Move)) {
	q.reschedule = func(ctx context.Context, ms []backend.Move) []error {
		return q.Queue.Reschedule(ctx, changed(q, ms, change))
	}
}

func (q *queue) onReceived(change func([]backend.Delivery)) {
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		ds, err := q.Queue.Receive(ctx, limit, lease)
		q.mu.Lock()
		defer q.mu.Unlock()
		change(ds)
		return ds, err
	}
}

func (q *queue) onDelivery(change func(*backend.Delivery)) {
	q.onReceived(func(ds []backend.Delivery) {
		for i := range ds {
			change(&ds[i])
		}
	})
}

func (q *queue) onGet(change func(*backend.MessageInfo)) {
	q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
		ms, errs := q.Queue.Get(ctx, ids)
		return changed(q, ms, change), errs
	}
}

func (q *queue) onPending(change func(*backend.Pending)) {
	q.peek = func(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
		page, next, err := q.Queue.Peek(ctx, cursor, limit)
		return changed(q, page, change), next, err
	}
}

func (q *queue) onDeadLetter(change func(*backend.DeadLetter)) {
	q.listDead = func(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
		page, next, err := q.Queue.ListDead(ctx, cursor, limit)
		return changed(q, page, change), next, err
	}
}

func (q *queue) onStats(change func(*backend.Stats)) {
	q.stats = func(ctx context.Context) (backend.Stats, error) {
		s, err := q.Queue.Stats(ctx)
		change(&s)
		return s, err
	}
}

// leasesFor has the store lease messages for another time than the caller gets.
func (q *queue) leasesFor(other func(time.Duration) time.Duration) {
	q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
		ds, err := q.Queue.Receive(ctx, limit, other(lease))
		for i := range ds {
			ds[i].Until = ds[i].Until.Add(lease - other(lease))
		}
		return ds, err
	}
}

func (q *queue) extendsFor(other func(time.Duration) time.Duration) {
	q.extend = func(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
		return q.Queue.Extend(ctx, ls, other(lease))
	}
}

// reopen uses a queue of another name instead.
func (q *queue) reopen(name string) {
	if other, err := q.backend.Open(context.Background(), name, q.options); err == nil {
		q.use(other)
	}
}

func changed[T any](q *queue, in []T, change func(*T)) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := slices.Clone(in)
	for i := range out {
		change(&out[i])
	}
	return out
}

// without makes one error a success.
func without(errs []error, not error) []error {
	for i, err := range errs {
		if errors.Is(err, not) {
			errs[i] = nil
		}
	}
	return errs
}

func succeed[T any](context.Context, []T) []error { return nil }

// forever waits until the context ends.
func forever(ctx context.Context) ([]backend.Delivery, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (q *queue) clock() clockwork.Clock {
	if q.options.Clock != nil {
		return q.options.Clock
	}
	return clockwork.NewRealClock()
}

// now receives messages that are due. It counts them first, so that it never sleeps on the queue's
// clock.
func (q *queue) now(limit int, lease time.Duration) ([]backend.Delivery, error) {
	if s, err := q.Queue.Stats(context.Background()); err != nil || s.Ready == 0 {
		return nil, errors.Join(err, context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	return q.Queue.Receive(ctx, limit, lease)
}

// drop acknowledges messages that no worker has handled.
func (q *queue) drop(ds []backend.Delivery) {
	for _, d := range ds {
		q.Queue.Ack(context.Background(), []backend.Lease{d.Lease()})
	}
}

// shared is the state that all handles on one queue share.
type shared struct {
	pushing, waiting, extra atomic.Int64
	turn                    chan struct{}
}

var sharings sync.Map

func (q *queue) shared() *shared {
	type key struct {
		b    backend.Backend
		name string
	}
	fresh := &shared{turn: make(chan struct{}, 1)}
	fresh.turn <- struct{}{}
	s, _ := sharings.LoadOrStore(key{q.backend, q.name}, fresh)
	return s.(*shared)
}
