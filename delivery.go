package delayq

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/settle"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// Delivery is a message that a worker holds, until it is settled with Ack, Nack, Release or
// DeadLetter or its lease ends. Its methods are safe for concurrent use.
//
// Once the message is no longer the caller's they change nothing. They return [ErrSettled] when
// this Delivery was settled before, or is being settled by another call that succeeds, and
// otherwise [ErrLeaseLost]. A call whose outcome is unknown may have settled the message: the next
// one then returns ErrLeaseLost. After the queue's Close they return [ErrClosed].
type Delivery struct {
	ID      string
	Body    []byte
	Headers map[string]string // nil when there are none
	Due     time.Time         // when it could be handed out, as the store rounded it

	// Attempt is 1 the first time and rises by one each time the message is handed out
	// again, also when the worker before died. A message that was released is not counted.
	Attempt int

	q       *queue
	attempt int // as Attempt, which a handler may change
	limits  *limits.Stored
	expired error // ErrExpired if it had at the hand-out
	lease   lease.Lease
}

func (q *queue) Receive(ctx context.Context) (*Delivery, error) {
	all, err := q.take(ctx, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (q *queue) ReceiveBatch(ctx context.Context, limit int) ([]*Delivery, error) {
	return q.take(ctx, limit)
}

// take receives messages for the user's own loop.
func (q *queue) take(ctx context.Context, limit int) ([]*Delivery, error) {
	if err := validLimit(limit); err != nil {
		return nil, q.fail("receive", "", err)
	}
	ds, err := q.receive(ctx, limit, false)
	if err != nil {
		return nil, q.fail("receive", "", err)
	}
	if q.telemetry != nil {
		now := q.clock.Now()
		observed := make([]telemetry.Delivery, len(ds))
		for i := range ds {
			observed[i] = delivery{ds[i]}.Observed(now)
		}
		q.telemetry.Delivered(ctx, telemetry.Receive, observed...)
	}
	return ds, nil
}

// receive waits until it has messages that have not expired. It deletes expired ones or makes them
// dead letters. A consumer gets those that become dead letters, since it reports them to [OnDead].
func (q *queue) receive(ctx context.Context, limit int, consumer bool) ([]*Delivery, error) {
	if err := valid.Context(ctx); err != nil {
		return nil, err
	}
	for {
		got, err := q.store.Receive(ctx, limit, q.lease)
		if err != nil {
			return nil, err
		}
		var gone settle.Expired
		ds, n, now := newDeliveries(got), 0, q.clock.Now()
		for i := range got {
			d, g := ds[n], &got[i]
			d.ID, d.Body, d.Headers, d.Due, d.Attempt = g.ID, g.Body, g.Headers, g.Due, g.Attempt
			d.q, d.attempt, d.limits, d.expired = q, g.Attempt, nil, nil
			if len(g.Headers) > 0 && q.expired(d, g.Until) && (!consumer || !d.limits.DeadLetterExpired) {
				gone.Add(g.Lease(), d.limits.DeadLetterExpired)
				continue
			}
			d.lease.Take(g.Lease(), q.lease, now, g.Until)
			n++
		}
		if n < len(got) {
			within := q.lease / 3 // the others wait for it
			if n == 0 {
				within = max(within, time.Second)
			}
			q.settle.Expired(ctx, gone, ErrExpired.Error(), within)
		}
		if n > 0 {
			return ds[:n], nil
		}
	}
}

// sharedBytes is how many bytes of bodies Deliveries may have that are in memory together.
const sharedBytes = 64 << 10

// newDeliveries returns an empty Delivery for each message. They are allocated together, unless one
// that is kept would keep many bytes of the others.
func newDeliveries(got []backend.Delivery) []*Delivery {
	ds, bytes := make([]*Delivery, len(got)), 0
	for i := range got {
		bytes += len(got[i].Body)
	}
	var shared []Delivery
	if bytes <= sharedBytes {
		shared = make([]Delivery, len(got))
	}
	for i := range ds {
		if shared != nil {
			ds[i] = &shared[i]
		} else {
			ds[i] = new(Delivery)
		}
	}
	return ds
}

// LeaseUntil returns when the lease ends by the store's clock. It moves as the lease is extended.
func (d *Delivery) LeaseUntil() time.Time { return d.lease.Until() }

// Ack marks the message as done. It is deleted.
func (d *Delivery) Ack(ctx context.Context) error {
	return d.call(ctx, telemetry.Ack, func() error { return d.q.settle.Ack(ctx, &d.lease) })
}

// Limits returns the message's own limits. Fields without a limit are zero. Workers with a loop of
// their own have to keep Attempts and HandlerTimeout themselves, as [Consumer.Consume] does.
func (d *Delivery) Limits() Limits { return d.limits.Own() }

// Nack gives the message back, to be due again after delay, 0 to a hundred years. The attempt
// counts. The body stays, and so do the headers without [NackHeaders].
func (d *Delivery) Nack(ctx context.Context, delay time.Duration, opts ...NackOption) error {
	return d.call(ctx, telemetry.Nack, func() error {
		how := backend.Return{Delay: delay}
		err := valid.Delay(delay, d.q.traits)
		if err == nil && len(opts) > 0 {
			how.NewHeaders, how.Headers, err = d.newHeaders(opts)
		}
		if err != nil {
			return err
		}
		return d.q.settle.Return(ctx, &d.lease, how)
	})
}

// Release gives the message back untouched: it is due at once, at its old place in the order, and
// the attempt does not count. Use it for messages that were received and not begun, as when a
// worker stops. Use [Delivery.Nack] for a message that failed: released, it would come back at
// once, again and again, and never reach [MaxAttempts].
func (d *Delivery) Release(ctx context.Context) error {
	return d.call(ctx, telemetry.Release, func() error { return d.q.settle.Return(ctx, &d.lease, backend.Return{Untouched: true}) })
}

// DeadLetter makes the message a dead letter, which [Queue.Dead] lists. A reason of more than 16
// KiB is cut.
func (d *Delivery) DeadLetter(ctx context.Context, reason string) error {
	return d.call(ctx, telemetry.Dead, func() error { return d.q.settle.Dead(ctx, &d.lease, valid.Reason(reason)) })
}

// Extend makes the lease end that long from now, 1 ms to 24 h. Consume renews the lease by itself
// while the handler runs, and leaves alone one that was extended to end later. In a handler of
// Consume Extend never makes the lease shorter than [WithLease] says.
func (d *Delivery) Extend(ctx context.Context, length time.Duration) error {
	return d.call(ctx, telemetry.Extend, func() error {
		if err := valid.Lease("lease", length); err != nil {
			return err
		}
		return cmp.Or(d.q.settle.Extend(ctx, []*lease.Lease{&d.lease}, length)...)
	})
}

// call makes a call on a delivery that a queue handed out.
func (d *Delivery) call(ctx context.Context, op string, call func() error) error {
	err := valid.Context(ctx)
	if d.q == nil {
		err = backend.Invalid("delivery", valid.Described("of no queue"), "one that Receive returned or a handler was given")
	}
	if err == nil {
		err = call()
	}
	return d.q.fail(op, d.ID, err)
}

// String returns the id, attempt and due time, and leaves the body out, for logs.
func (d *Delivery) String() string {
	return fmt.Sprintf("message %s, attempt %d, due %s", d.ID, d.Attempt, d.Due.Format(time.RFC3339Nano))
}

// NackOption adds to a [Delivery.Nack].
type NackOption func(*nackOptions) error

type nackOptions struct {
	newHeaders bool
	headers    map[string]string
}

// NackHeaders replaces all headers of the message with h as it is given back; nil or empty leaves
// none. To keep an old header, such as the trace of the push, put it into h. The limits are those
// of a push, and the store copies h. The message keeps its own [Limits], which are none of these
// headers.
//
// A message that is not given back keeps its headers. After a nack whose outcome is unknown it has
// the old ones or the new. A store at its limit may return [ErrFull] for headers larger than the
// old ones; the lease then goes on. It needs [ChangingHeaders].
func NackHeaders(h map[string]string) NackOption {
	return func(o *nackOptions) error {
		o.newHeaders, o.headers = true, h
		return valid.Headers(h, "")
	}
}

// newHeaders is not a part of Nack, where o would be an allocation for each nack.
func (d *Delivery) newHeaders(opts []NackOption) (replace bool, headers map[string]string, err error) {
	var o nackOptions
	err = valid.Apply(&o, opts, "nack option", "the result of NackHeaders")
	if err == nil && o.newHeaders {
		err = d.q.lacks(ChangingHeaders, ChangingHeaders.String())
	}
	if err == nil && o.newHeaders && d.limits != nil {
		o.headers, err = d.limits.In(o.headers)
	}
	return o.newHeaders, o.headers, err
}
