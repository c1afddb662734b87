package memory

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// A queue is one handle on a store.
type queue struct {
	*store
	closed  chan struct{}
	once    sync.Once
	onClose func(*queue)
}

var _ backend.Queue = (*queue)(nil)

func newQueue(s *store, onClose func(*queue)) *queue {
	return &queue{store: s, closed: make(chan struct{}), onClose: onClose}
}

// Close takes the lock, so that no Receive of this handle takes a message after it.
func (q *queue) Close() error {
	q.once.Do(func() {
		q.mu.Lock()
		close(q.closed)
		q.mu.Unlock()
		q.onClose(q)
	})
	return nil
}

// InTx returns ErrUnsupported: there is no transaction to be part of.
func (*queue) InTx(any) (backend.Queue, error) { return nil, backend.ErrUnsupported }

func (q *queue) check(ctx context.Context) error {
	select {
	case <-q.closed:
		return backend.ErrClosed
	default:
		return ctx.Err()
	}
}

// begin enters the store for a call. Close takes the lock too, and then the store may be forgotten:
// a call that returns without an error was before that.
func (q *queue) begin(ctx context.Context) (now int64, err error) {
	now = q.enter()
	if err := q.check(ctx); err != nil {
		q.mu.Unlock()
		return 0, err
	}
	return now, nil
}

// each calls do for each of n messages under one lock, and then wakes sleepers.
func (q *queue) each(ctx context.Context, n int, do func(i int, now int64) error) []error {
	now, err := q.begin(ctx)
	if err != nil {
		return backend.FailAll(n, err)
	}
	defer q.mu.Unlock()
	errs := backend.Each(n, func(i int) error { return do(i, now) })
	q.rouseLocked(now)
	return errs
}

func (q *queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.each(ctx, len(ms), func(i int, now int64) error {
		err := q.addLocked(&ms[i], now)
		if err == nil {
			q.activity.Pushed++
		}
		return err
	})
}

func (q *queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	var z *sleeper
	for {
		var ds []backend.Delivery
		var err error
		if ds, z, err = q.takeOrSleep(ctx, z, limit, lease); ds != nil || err != nil {
			return ds, err
		}
		select {
		case <-z.wake:
		case <-ctx.Done():
		case <-q.closed:
		}
	}
}

// takeOrSleep takes messages, or adds z to the sleepers: a new sleeper if z is nil. When the call ends
// with an error, it removes z.
func (q *queue) takeOrSleep(ctx context.Context, z *sleeper, limit int, lease time.Duration) ([]backend.Delivery, *sleeper, error) {
	now := q.enter()
	defer q.mu.Unlock()
	defer q.rouseLocked(now) // a sleeper that gives up passes its wake-up on
	if z != nil && z.asleep {
		q.sleep.remove(z)
	}
	if err := q.check(ctx); err != nil {
		return nil, nil, err
	}
	if ds := q.takeLocked(now, limit, lease); ds != nil {
		return ds, nil, nil
	}
	if z == nil {
		z = newSleeper()
	}
	q.sleep.add(z)
	return nil, z, nil
}

// settle does one thing to each message that its lease still holds.
func (q *queue) settle(ctx context.Context, n int, lease func(i int) backend.Lease, do func(i int, slot uint32, now int64)) []error {
	return q.each(ctx, n, func(i int, now int64) error {
		slot, err := q.heldLocked(lease(i))
		if err == nil {
			do(i, slot, now)
		}
		return err
	})
}

func (q *queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.settle(ctx, len(ls), func(i int) backend.Lease { return ls[i] },
		func(_ int, slot uint32, _ int64) {
			q.activity.Acked++
			if q.nodes.at(slot).replaced() {
				q.giveBackLocked(slot, q.held.at(slot))
				return
			}
			q.endLeaseLocked(slot)
			q.forgetLocked(slot)
		})
}

func (q *queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.each(ctx, len(rs), func(i int, now int64) error {
		slot, err := q.heldLocked(rs[i].Lease)
		replaced := err == nil && q.nodes.at(slot).replaced()
		if err == nil && rs[i].NewHeaders && !replaced {
			err = q.setHeadersLocked(slot, rs[i].Headers, now)
		}
		if err != nil {
			return err
		}
		k := q.held.at(slot)
		switch {
		case replaced:
		case rs[i].Untouched:
			n := q.nodes.at(slot)
			n.setAttempt(n.attempt() - 1)
		default:
			k.when = after(now, rs[i].Delay)
		}
		q.giveBackLocked(slot, k)
		return nil
	})
}

func (q *queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	errs := q.settle(ctx, len(ls), func(i int) backend.Lease { return ls[i] },
		func(i int, slot uint32, now int64) {
			until := after(now, lease)
			q.leases.move(slot, key{until, ls[i].Token.Lo})
			ends[i] = moment(until)
		})
	return ends, errs
}

func (q *queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.settle(ctx, len(bs), func(i int) backend.Lease { return bs[i].Lease },
		func(i int, slot uint32, now int64) { q.deadLetterLocked(slot, now, bs[i].Reason) })
}

func (q *queue) Cancel(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int, _ int64) error {
		slot, err := q.waitingLocked(ids[i])
		if err == nil {
			q.due.remove(slot)
			q.forgetLocked(slot)
		}
		return err
	})
}

func (q *queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.each(ctx, len(ms), func(i int, now int64) error {
		slot, err := q.waitingLocked(ms[i].ID)
		if err == nil {
			k := q.due.key(slot)
			k.when = dueTime(ms[i].Due, ms[i].Delay, now)
			q.due.move(slot, k)
		}
		return err
	})
}

func (q *queue) Stats(ctx context.Context) (backend.Stats, error) {
	now, err := q.begin(ctx)
	if err != nil {
		return backend.Stats{}, err
	}
	defer q.mu.Unlock()
	st := q.due.survey(now)
	st.InFlight, st.Dead = int64(q.leases.len()), int64(q.dead.len())
	st.Activity = q.activity
	if q.due.len() > 0 {
		k, _ := q.due.head()
		st.HeadDue, st.OldestReady = moment(k.when), time.Duration(max(now-k.when, 0))
	}
	if st.Paused = q.paused > now; st.Paused && q.paused < math.MaxInt64 {
		st.PausedUntil = moment(q.paused)
	}
	return st, nil
}

func (q *queue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	errs := q.each(ctx, len(ids), func(i int, now int64) (err error) {
		infos[i], err = q.getLocked(ids[i], now)
		return err
	})
	return infos, errs
}

func (q *queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	now, err := q.begin(ctx)
	if err != nil {
		return nil, "", err
	}
	defer q.mu.Unlock()
	return q.peekLocked(now, cursor, limit)
}

func (q *queue) Purge(ctx context.Context) (int64, error) {
	if _, err := q.begin(ctx); err != nil {
		return 0, err
	}
	defer q.mu.Unlock()
	n := int64(q.nodes.live)
	q.emptyLocked()
	return n, nil
}

func (q *queue) PauseAll(ctx context.Context, p backend.Pause) error {
	return q.pauseUntil(ctx, func(now int64) int64 {
		if p == (backend.Pause{}) {
			return math.MaxInt64
		}
		return dueTime(p.Until, p.For, now)
	})
}

func (q *queue) ResumeAll(ctx context.Context) error {
	return q.pauseUntil(ctx, func(int64) int64 { return math.MinInt64 })
}

func (q *queue) pauseUntil(ctx context.Context, end func(now int64) int64) error {
	now, err := q.begin(ctx)
	if err != nil {
		return err
	}
	defer q.mu.Unlock()
	q.paused = end(now)
	q.rouseLocked(now)
	return nil
}

func (q *queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	now, err := q.begin(ctx)
	if err != nil {
		return nil, "", err
	}
	defer q.mu.Unlock()
	return pageOfDead(q.store, cursor, limit, func(l letter) backend.DeadLetter { return q.infoLocked(l.slot, now) })
}

func (q *queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	if _, err := q.begin(ctx); err != nil {
		return nil, "", err
	}
	defer q.mu.Unlock()
	return pageOfDead(q.store, cursor, limit, q.idLocked)
}

func (q *queue) Redrive(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int, now int64) error {
		slot, err := q.deadLocked(ids[i])
		if err == nil {
			q.redriveLocked(slot, now)
		}
		return err
	})
}

// TrimDead deletes as many as can be had while other calls wait for no more than a moment.
func (q *queue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	now, err := q.begin(ctx)
	if err != nil {
		return 0, false, err
	}
	defer q.mu.Unlock()
	gone := q.dead.notKept(r, now, mostTrimmed)
	for _, slot := range gone {
		q.dead.remove(slot)
		q.forgetLocked(slot)
	}
	return len(gone), len(gone) == mostTrimmed, nil
}

const mostTrimmed = 1000

func (q *queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.each(ctx, len(ids), func(i int, _ int64) error {
		slot, err := q.deadLocked(ids[i])
		if err == nil {
			q.dead.remove(slot)
			q.forgetLocked(slot)
		}
		return err
	})
}
