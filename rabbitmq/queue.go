package rabbitmq

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// queue is a handle. Its loop owns the channel to consume on and all messages received there.
type queue struct {
	backend.Unsupported // for Reschedule, Get, Peek and Purge

	b          *Backend
	name       string
	names      names
	log        *slog.Logger
	tombstones *queueTombstones // nil without a store
	loop       *channelLoop
	sub        *link // the connection to consume on

	listing listing // of dead letters
	refusal refusal

	closing sync.Once
}

var _ backend.Queue = (*queue)(nil)

func newQueue(b *Backend, name string, sub *link, o backend.Options) *queue {
	q := &queue{b: b, name: name, names: b.names, log: o.Logger, sub: sub, refusal: refusal{report: o.Refused}}
	q.tombstones = newQueueTombstones(&b.options, b.names.queue(name), q.log)
	q.loop = newChannelLoop(q)
	return q
}

// declare declares the queue and its dead letters. If a part of the shared topology is gone, it
// declares that again.
func (q *queue) declare(ctx context.Context) error {
	_, err := within(ctx, func() (struct{}, error) {
		began := time.Now()
		err := q.declareOnce(ctx)
		if refusedWith(err, amqp.NotFound) && !nodeIsAway(err) {
			if err = q.b.pub.redeclareShared(ctx, began, err.Error()); err == nil {
				err = q.declareOnce(ctx)
			}
		}
		return struct{}{}, err
	})
	return err
}

func (q *queue) declareOnce(ctx context.Context) error {
	return patiently(ctx, func() error {
		s, err := q.sub.session(ctx)
		if err != nil {
			return err
		}
		return q.declareOn(s)
	})
}

func (q *queue) declareOn(s *session) error {
	return declareOwn(s.conn.Connection, q.names, q.name, q.b.classic)
}

// Schedule is as in backend.Queue. It does not repeat a push whose outcome is unknown.
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

// push publishes messages for the first time. made is when their due times were computed. The route
// must follow from the same delay: one millisecond less may have four digits instead of one.
func (q *queue) push(ctx context.Context, rs []record, made time.Time) []error {
	if err := q.tombstones.enroll(ctx, rs); err != nil {
		return backend.FailAll(len(rs), err)
	}
	if q.tombstones != nil {
		made = time.Now() // the store may have been slow
	}
	out := make([]outgoing, len(rs))
	for i := range rs {
		out[i] = q.scheduled(&rs[i], made)
	}
	return q.b.pub.publish(ctx, out)
}

// accepts rejects a delay that this backend does not support.
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

// nackDelay returns how long a nacked message waits. A nack with another delay than Fixed's is no
// error. Consume's retries have any delay, and a failed nack would keep the message until its lease
// ends.
func (q *queue) nackDelay(wait time.Duration) time.Duration {
	if b, ok := q.b.delayer.(buckets); ok && b.only && wait > 0 {
		return max(wait, b.waits[0])
	}
	return wait
}

// scheduled returns a message with the route to its due time.
func (q *queue) scheduled(r *record, now time.Time) outgoing {
	to := q.routeTo(r.due, now)
	p := r.publishing()
	maps.Copy(p.Headers, to.headers)
	p.Headers[queueHeader] = []byte(q.name)
	return outgoing{route: to, Publishing: p, q: q, received: r.received, due: r.due, made: now}
}

// requeued returns a copy of a message that a handle received, to publish again.
func (q *queue) requeued(r *record) outgoing {
	out := q.scheduled(r, time.Now())
	out.requeued = true
	return out
}

// routeTo returns the route to a due time. The handle that receives the message waits for the rest
// of the delay. That is less than a millisecond, or the part beyond the longest delay. Rounding up
// here could turn a delay of one digit, or of a bucket, into a longer one.
func (q *queue) routeTo(due, now time.Time) route {
	ms := due.Sub(now).Milliseconds()
	if ms <= 0 {
		return immediate(q.names, q.name)
	}
	return q.b.delayer.route(q.names, q.name, ms)
}

func (q *queue) guarded(ctx context.Context, n int, do func() []error) []error {
	if err := q.open(ctx); err != nil {
		return backend.FailAll(n, err)
	}
	return do()
}

// guardedWithin is guarded for calls that may block longer than their context.
func (q *queue) guardedWithin(ctx context.Context, n int, do func() []error) []error {
	return q.guarded(ctx, n, func() []error {
		errs, err := within(ctx, func() ([]error, error) { return do(), nil })
		if err != nil {
			return backend.FailAll(n, unknown(err))
		}
		return errs
	})
}

// leaveWithin is how long a call whose context has ended still waits for its outcome.
const leaveWithin = 20 * time.Millisecond

// within returns the result of do, or the error of a context that ends before. The client library
// takes no contexts, and its calls may block until the heartbeat breaks the connection. do then
// goes on in the background.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	var t T
	var err error
	done := make(chan struct{})
	go func() {
		t, err = do()
		close(done)
	}()
	select {
	case <-done:
		return t, err
	case <-ctx.Done():
	}
	select {
	case <-done:
		return t, err
	case <-time.After(leaveWithin):
		var none T
		return none, ctx.Err()
	}
}

func (q *queue) open(ctx context.Context) error {
	if q.loop.life.Err() != nil {
		return backend.ErrClosed
	}
	return ctx.Err()
}

// Receive is as in backend.Queue. While there is no connection it waits.
func (q *queue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	if err := q.open(ctx); err != nil {
		return nil, err
	}
	return q.loop.receive(ctx, limit, lease)
}

// Ack is as in backend.Queue. It returns when the broker's end of the channel has read it.
func (q *queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.guarded(ctx, len(ls), func() []error { return q.loop.ack(ctx, ls) })
}

// Nack is as in backend.Queue: it publishes the message again, then acknowledges the first. A crash
// between the two leaves a duplicate. If the queue refuses the message, it comes back seconds after
// the queue has room.
func (q *queue) Nack(ctx context.Context, rs []backend.Return) []error {
	rs = slices.Clone(rs) // it may go on after it has returned
	leases := make([]backend.Lease, len(rs))
	for i, r := range rs {
		leases[i], rs[i].Headers = r.Lease, maps.Clone(r.Headers)
	}
	return q.guardedWithin(ctx, len(rs), func() []error {
		return q.loop.replace(ctx, leases, q.tombstones.release, func(i int, r *record) outgoing {
			if rs[i].Untouched {
				r.attempts--
			} else {
				r.due = ceil(time.Now().Add(q.nackDelay(rs[i].Delay)))
			}
			if rs[i].NewHeaders {
				r.headers, r.received = rs[i].Headers, false
			}
			return q.requeued(r)
		})
	})
}

// Dead is as in backend.Queue, and publishes like Nack.
func (q *queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	bs = slices.Clone(bs) // it may go on after it has returned
	leases := make([]backend.Lease, len(bs))
	for i, b := range bs {
		leases[i] = b.Lease
	}
	return q.guardedWithin(ctx, len(bs), func() []error {
		defer q.listing.forget()
		return q.loop.replace(ctx, leases, q.tombstones.settle, func(i int, r *record) outgoing {
			p := r.publishing()
			p.Headers[reasonHeader] = []byte(bs[i].Reason)
			p.Headers[diedHeader] = q.b.deaths.next(time.Now())
			return outgoing{route: route{key: q.names.dead(q.name)}, Publishing: p, q: q, received: true}
		})
	})
}

// Extend is as in backend.Queue. A lease is a timer of this handle.
func (q *queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) (ends []time.Time, errs []error) {
	ends = make([]time.Time, len(ls))
	errs = q.guarded(ctx, len(ls), func() []error {
		ss := q.loop.extend(ctx, ls, lease)
		for i, s := range ss {
			ends[i] = s.end
		}
		return errorsOf(ss)
	})
	return ends, errs
}

// Close is as in backend.Queue. Leased messages return to the queue at once.
func (q *queue) Close() error {
	q.closing.Do(func() {
		q.loop.close()
		q.listing.close()
		q.b.forget(q)
	})
	return nil
}
