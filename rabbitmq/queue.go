package rabbitmq

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// queue is a handle. One goroutine, its desk, owns the channel that it consumes on and all that is in its hands.
type queue struct {
	backend.Unsupported // for Reschedule, Stats, Peek and Purge

	b     *Backend
	name  string
	names names
	log   *slog.Logger
	marks *marks // nil without a tombstone store
	desk  *desk
	sub   *link // it consumes on

	listing listing      // of dead letters
	refusal atomic.Int64 // when it was last logged that the queue refuses messages, in ns since 1970

	closing sync.Once
}

var _ backend.Queue = (*queue)(nil)

func newQueue(b *Backend, name string, sub *link, log *slog.Logger) *queue {
	q := &queue{b: b, name: name, names: b.names, log: log, sub: sub}
	q.marks = newMarks(&b.options, b.names.queue(name), log)
	q.desk = newDesk(q)
	return q
}

// declare declares the queue and its dead letters.
func (q *queue) declare(ctx context.Context) error {
	_, err := within(ctx, func() (struct{}, error) {
		s, err := q.sub.session(ctx)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, q.declareOn(s)
	})
	return err
}

func (q *queue) declareOn(s *session) error {
	return declareOwn(s.conn.Connection, q.names, q.name, q.b.classic)
}

// Schedule is as in backend.Queue. A message of which it is not known whether the broker has it is not pushed again.
func (q *queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	return q.guarded(ctx, len(ms), func() []error {
		now := time.Now()
		rs := make([]record, 0, len(ms))
		errs, at := make([]error, len(ms)), make([]int, 0, len(ms))
		for i := range ms {
			r := newRecord(&ms[i], now)
			if errs[i] = q.accepts(&ms[i], r.due.Sub(now)); errs[i] == nil {
				rs, at = append(rs, r), append(at, i)
			}
		}
		for j, err := range q.push(ctx, rs, now) {
			errs[at[j]] = err
		}
		return errs
	})
}

// push publishes messages for the first time. Their due times were made of delays at the time that is given: the same delay has to come
// out again, since one millisecond less may have four digits instead of one.
func (q *queue) push(ctx context.Context, rs []record, made time.Time) []error {
	if err := q.marks.enroll(ctx, rs); err != nil {
		return backend.FailAll(len(rs), err)
	}
	if q.marks != nil {
		made = time.Now() // the store may have taken its time
	}
	out := make([]outgoing, len(rs))
	for i := range rs {
		out[i] = q.scheduled(&rs[i], made)
	}
	return q.b.pub.publish(ctx, out)
}

// accepts refuses a delay that this backend does not take.
func (q *queue) accepts(m *backend.Message, wait time.Duration) error {
	if m.Due.IsZero() {
		wait = m.Delay
	}
	if limit := q.b.maxDelay(); limit > 0 && wait > limit {
		return backend.Invalid("delay", wait, "up to "+limit.String()+", half of what KeepCancelled says")
	}
	if b, ok := q.b.delayer.(buckets); ok {
		return b.accepts(wait)
	}
	return nil
}

// scheduled is a message on its way to its due time.
func (q *queue) scheduled(r *record, now time.Time) outgoing {
	to := q.toward(r.due, now)
	p := r.publishing()
	maps.Copy(p.Headers, to.headers)
	p.Headers[queueHeader] = []byte(q.name)
	return outgoing{route: to, Publishing: p, q: q, due: r.due, made: now}
}

// toward is the way to a due time.
func (q *queue) toward(due, now time.Time) route {
	// What is less than a millisecond is waited for when it arrives: the due time is rounded up already, and a delay of a
	// bucket, or of one digit, has to stay that.
	ms := due.Sub(now).Milliseconds()
	if ms <= 0 {
		return immediate(q.names, q.name)
	}
	to, _ := q.b.delayer.route(q.names, q.name, ms) // what is left is waited for when it arrives, too
	return to
}

func (q *queue) guarded(ctx context.Context, n int, do func() []error) []error {
	if err := q.open(ctx); err != nil {
		return backend.FailAll(n, err)
	}
	return do()
}

// guardedWithin is guarded for what may block longer than its context.
func (q *queue) guardedWithin(ctx context.Context, n int, do func() []error) []error {
	return q.guarded(ctx, n, func() []error {
		errs, err := within(ctx, func() ([]error, error) { return do(), nil })
		if err != nil {
			return backend.FailAll(n, fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err))
		}
		return errs
	})
}

// within returns what do returns, or the error of a context that ended before. Calls of the client library know no contexts and may block until the
// heartbeat breaks the connection: then do goes on by itself.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		t   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		t, err := do()
		done <- outcome{t, err}
	}()
	select {
	case o := <-done:
		return o.t, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.t, o.err
	case <-time.After(leaveWithin):
		var none T
		return none, ctx.Err()
	}
}

func (q *queue) open(ctx context.Context) error {
	if q.desk.life.Err() != nil {
		return backend.ErrClosed
	}
	return ctx.Err()
}

// Receive is as in backend.Queue. While there is no connection it waits.
func (q *queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.open(ctx); err != nil {
		return nil, err
	}
	return q.desk.receive(ctx, limit, lease)
}

// Ack is as in backend.Queue. It returns when the broker's end of the channel has seen it.
func (q *queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.guarded(ctx, len(ls), func() []error { return q.desk.ack(ctx, ls) })
}

// Nack is as in backend.Queue: the message is published again, then acknowledged. Between the two a crash makes two of it.
func (q *queue) Nack(ctx context.Context, rs []backend.Return) []error {
	leases := make([]backend.Lease, len(rs))
	for i, r := range rs {
		leases[i] = r.Lease
	}
	return q.guardedWithin(ctx, len(rs), func() []error {
		return q.desk.replace(ctx, leases, q.marks.release, func(i int, r *record) outgoing {
			if rs[i].Untouched {
				r.attempts--
			} else {
				r.due = ceil(time.Now().Add(rs[i].Delay))
			}
			if rs[i].NewHeaders {
				r.headers = rs[i].Headers
			}
			return q.scheduled(r, time.Now())
		})
	})
}

// Dead is as in backend.Queue, in the way of Nack.
func (q *queue) Dead(ctx context.Context, bs []backend.Burial) []error {
	leases := make([]backend.Lease, len(bs))
	for i, b := range bs {
		leases[i] = b.Lease
	}
	return q.guardedWithin(ctx, len(bs), func() []error {
		defer q.listing.forget()
		return q.desk.replace(ctx, leases, q.marks.settle, func(i int, r *record) outgoing {
			p := r.publishing()
			p.Headers[reasonHeader] = []byte(bs[i].Reason)
			p.Headers[diedHeader] = time.Now().UnixMicro()
			return outgoing{route: route{key: q.names.dead(q.name)}, Publishing: p, q: q}
		})
	})
}

// Extend is as in backend.Queue. The lease is this handle's own timer.
func (q *queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) (ends []time.Time, errs []error) {
	ends = make([]time.Time, len(ls))
	errs = q.guarded(ctx, len(ls), func() []error { return q.desk.extend(ctx, ls, lease, ends) })
	return ends, errs
}

// Close is as in backend.Queue. What the handle has leased returns to the queue at once.
func (q *queue) Close() error {
	q.closing.Do(func() {
		q.desk.close()
		q.listing.close()
		q.b.forget(q)
	})
	return nil
}

// tellRefused warns, once a minute at most, that the queue itself refuses messages: levels that cannot pass on to it hold up the messages of all queues.
func (q *queue) tellRefused(key string) {
	now := time.Now().UnixNano()
	if last := q.refusal.Load(); key != q.names.queue(q.name) || now-last < int64(time.Minute) || !q.refusal.CompareAndSwap(last, now) {
		return
	}
	q.log.Warn("delayq: a queue refuses messages: it has no leader, or a policy with overflow reject-publish has it refuse what is too much. "+
		"Delayed messages of all queues come late meanwhile; without that overflow, the surplus goes to undeliverable", "queue", q.name)
}
