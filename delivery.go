package delayq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// Delivery is a message in a worker's hands, until it is settled with Ack, Nack or Dead or
// its lease ends. Its methods are safe for concurrent use and answer [ErrLeaseLost], having
// changed nothing, when the message is no longer the caller's: the lease ended or the message
// is settled. After the queue's Close they answer [ErrClosed].
type Delivery struct {
	ID      string
	Body    []byte
	Headers map[string]string // nil when there are none
	Due     time.Time         // when it could be handed out, as the store rounded it

	// Attempt is 1 the first time and rises by one each time the message is handed out
	// again, also when the worker before died. A message given back untouched is not counted.
	Attempt int

	q       *queue
	lease   backend.Lease
	until   atomic.Int64 // end of the lease by the store's clock, nanoseconds since 1970
	kept    atomic.Int64 // the same by the queue's own clock, for when the store cannot be asked
	ahead   int64        // of the queue's own clock is the store's, in nanoseconds, as the hand-out showed
	settled atomic.Bool  // or being settled, or lost
}

func (d *Delivery) take(q *queue, got *backend.Delivery) {
	d.ID, d.Body, d.Headers, d.Due, d.Attempt = got.ID, got.Body, got.Headers, got.Due, got.Attempt
	d.q, d.lease = q, got.Lease()
	d.keep(got.Until, q.clock.Now().Add(q.lease))
	d.ahead = d.until.Load() - d.kept.Load()
}

func (d *Delivery) keep(until, kept time.Time) {
	d.until.Store(until.UnixNano())
	d.kept.Store(kept.UnixNano())
}

// lateness is how long before now, by the queue's own clock, the message was due by the store's: the two may differ.
func (d *Delivery) lateness(now time.Time) time.Duration {
	return max(time.Duration(now.UnixNano()+d.ahead-d.Due.UnixNano()), 0)
}

// LeaseUntil returns when the lease ends by the store's clock. It moves as the lease is extended.
func (d *Delivery) LeaseUntil() time.Time { return time.Unix(0, d.until.Load()).UTC() }

// Ack says that the message is done. It is deleted.
func (d *Delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, "ack", nil, func() error {
		return d.q.acks.do(ctx, &[1]backend.Lease{d.lease})
	})
}

// Nack gives the message back, to be due again after delay, 0 to a hundred years.
func (d *Delivery) Nack(ctx context.Context, delay time.Duration) error {
	return d.settle(ctx, "nack", func() error { return validDelay(delay, d.q.traits) }, func() error {
		return d.q.nacks.do(ctx, &[1]backend.Return{{Lease: d.lease, Delay: delay}})
	})
}

// handBack gives the message back as if nobody had had it.
func (d *Delivery) handBack(ctx context.Context) error {
	return d.settle(ctx, "nack", nil, func() error {
		return d.q.nacks.do(ctx, &[1]backend.Return{{Lease: d.lease, Untouched: true}})
	})
}

// Dead makes the message a dead letter, to be looked at with [Queue.Dead]. A reason of more
// than 16 KiB is cut.
func (d *Delivery) Dead(ctx context.Context, reason string) error {
	return d.settle(ctx, "dead", nil, func() error {
		return one(d.q.store.Dead(ctx, []backend.Burial{{Lease: d.lease, Reason: cut(reason, backend.MaxReason)}}))
	})
}

// Extend makes the lease end that long from now, 1 ms to 24 h. Consume does it by itself.
func (d *Delivery) Extend(ctx context.Context, lease time.Duration) error {
	if err := firstError(d.valid(ctx), validLease("lease", lease)); err != nil {
		return d.fail("extend", err)
	}
	began := d.q.meter.begin()
	kept := d.q.clock.Now().Add(lease)
	ends, errs := d.q.store.Extend(ctx, []backend.Lease{d.lease}, lease)
	err := one(errs)
	d.q.meter.operated(ctx, opExtend, began, err)
	if err != nil {
		return d.fail("extend", err)
	}
	d.keep(ends[0], kept)
	return nil
}

// settle makes the one call that ends the delivery. While it is under way, the lease is not renewed.
func (d *Delivery) settle(ctx context.Context, op string, check, call func() error) error {
	err := d.valid(ctx)
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return d.fail(op, err)
	}
	d.settled.Store(true)
	began := d.q.meter.begin()
	err = call()
	d.settledBy(err)
	d.q.meter.settled(ctx, op, began, err)
	return d.fail(op, err)
}

// settledBy notes the outcome of a settling. What is lost needs no settling either.
func (d *Delivery) settledBy(err error) {
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		d.settled.Store(false)
	}
}

func (d *Delivery) valid(ctx context.Context) error {
	if d.q == nil {
		return backend.Invalid("delivery", described("of no queue"), "one that Receive returned or a handler was given")
	}
	return validContext(ctx)
}

func (d *Delivery) fail(op string, err error) error {
	if d.q == nil {
		return opError(op, "", d.ID, err)
	}
	return d.q.fail(op, d.ID, err)
}

// cut shortens a text to at most n bytes, at the end of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// String helps a %v in a log; it leaves the body out.
func (d *Delivery) String() string {
	return fmt.Sprintf("message %s, attempt %d, due %s", d.ID, d.Attempt, d.Due.Format(time.RFC3339Nano))
}
