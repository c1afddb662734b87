package delayq

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

// Delivery is a message in a worker's hands, until it is settled with Ack, Nack, Release or Dead or
// its lease ends. Its methods are safe for concurrent use. When the message is no longer the caller's they
// change nothing, and return [ErrSettled] where this Delivery was settled before, or is being settled by another
// call that succeeds, and else [ErrLeaseLost]. A settling whose outcome is unknown may have happened:
// the next one then returns ErrLeaseLost. After the queue's Close they return [ErrClosed].
type Delivery struct {
	ID      string
	Body    []byte
	Headers map[string]string // nil when there are none
	Due     time.Time         // when it could be handed out, as the store rounded it

	// Attempt is 1 the first time and rises by one each time the message is handed out
	// again, also when the worker before died. A message given back untouched is not counted.
	Attempt int

	q        *queue
	attempt  int  // as Attempt, which a handler may change
	consumed bool // by a Consume, which renews the lease
	lease    backend.Lease
	taken    int64        // when it was taken by the queue's own clock, nanoseconds since 1970
	until    atomic.Int64 // end of the lease by the store's clock, the same way
	kept     atomic.Int64 // the same by the queue's own clock, for when the store cannot be asked
	asked    atomic.Int64 // the same, as the latest Extend asked for it
	ahead    int64        // of the queue's own clock is the store's, in nanoseconds, as the hand-out showed
	settle   settlement
}

func (d *Delivery) take(q *queue, got *backend.Delivery) {
	d.ID, d.Body, d.Headers, d.Due, d.Attempt = got.ID, got.Body, got.Headers, got.Due, got.Attempt
	d.q, d.lease, d.attempt = q, got.Lease(), got.Attempt
	now := q.clock.Now()
	d.taken = now.UnixNano()
	d.keep(got.Until, now.Add(q.lease))
	d.ahead = d.until.Load() - d.kept.Load()
}

// heldSince is how long ago the message was taken.
func (d *Delivery) heldSince(now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - d.taken)
}

func (d *Delivery) keep(until, kept time.Time) {
	d.until.Store(until.UnixNano())
	d.kept.Store(kept.UnixNano())
}

// lateness is how long before now, by the queue's own clock, the message was due by the store's: the two may differ.
func (d *Delivery) lateness(now time.Time) time.Duration {
	return max(time.Duration(now.UnixNano()+d.ahead-d.Due.UnixNano()), 0)
}

// observed returns what metrics and traces record of the delivery at a time of the queue's own clock.
func (d *Delivery) observed(now time.Time) telemetry.Delivery {
	return telemetry.Delivery{ID: d.ID, BodySize: len(d.Body), Headers: d.Headers, Attempt: d.Attempt, Lateness: d.lateness(now)}
}

// LeaseUntil returns when the lease ends by the store's clock. It moves as the lease is extended.
func (d *Delivery) LeaseUntil() time.Time { return time.Unix(0, d.until.Load()).UTC() }

// Ack says that the message is done. It is deleted.
func (d *Delivery) Ack(ctx context.Context) error {
	return d.settleBy(ctx, telemetry.Ack, nil, func() error {
		return d.q.acks.Do(ctx, &[1]backend.Lease{d.lease})
	})
}

// Nack gives the message back, to be due again after delay, 0 to a hundred years. The attempt counts. The body stays, and so do the headers
// without [NackHeaders].
func (d *Delivery) Nack(ctx context.Context, delay time.Duration, opts ...NackOption) error {
	var o nackOptions
	check := func() (err error) {
		if err = validDelay(delay, d.q.traits); err == nil {
			o, err = d.q.nackOptions(opts)
		}
		return err
	}
	return d.settleBy(ctx, telemetry.Nack, check, func() error {
		return d.q.nacks.Do(ctx, &[1]backend.Return{{Lease: d.lease, Delay: delay, NewHeaders: o.newHeaders, Headers: o.headers}})
	})
}

// Release gives the message back as if nobody had had it: it is due at once, at its old place in the order, and the attempt does not count.
// It is for what was received and not begun, as when a worker stops. A message that failed is for [Delivery.Nack]: released, it would come
// at once, again and again, and never reach [MaxAttempts].
func (d *Delivery) Release(ctx context.Context) error {
	return d.settleBy(ctx, telemetry.Release, nil, func() error {
		return d.q.nacks.Do(ctx, &[1]backend.Return{{Lease: d.lease, Untouched: true}})
	})
}

// Dead makes the message a dead letter, to be looked at with [Queue.Dead]. A reason of more
// than 16 KiB is cut.
func (d *Delivery) Dead(ctx context.Context, reason string) error {
	return d.settleBy(ctx, telemetry.Dead, nil, func() error {
		return one(d.q.store.Dead(ctx, []backend.Burial{{Lease: d.lease, Reason: cut(reason, backend.MaxReason)}}))
	})
}

// Extend makes the lease end that long from now, 1 ms to 24 h. Consume does it by itself while the handler runs, and leaves alone a lease
// that was extended to end later than a renewal would have it. So in a
// handler of Consume no Extend makes the lease shorter than [WithLease] says.
func (d *Delivery) Extend(ctx context.Context, lease time.Duration) error {
	if err := firstError(d.valid(ctx), validLease("lease", lease)); err != nil {
		return d.fail(telemetry.Extend, err)
	}
	return d.fail(telemetry.Extend, one(d.q.extend(ctx, []*Delivery{d}, lease)))
}

// settleBy makes the one call that ends the delivery. While it is under way, the lease is not renewed.
func (d *Delivery) settleBy(ctx context.Context, op string, check, call func() error) error {
	err := d.valid(ctx)
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return d.fail(op, err)
	}
	began := d.q.telemetry.Start()
	if err = ErrSettled; d.settle.begin() {
		err = call()
		d.settle.end(err)
		err = d.settle.outcome(ctx, err)
	}
	d.q.telemetry.Settled(ctx, op, 1-failures([]error{err}), began, err)
	return d.fail(op, err)
}

// ended reports whether the delivery is settled, or being settled, or lost.
func (d *Delivery) ended() bool { return d.settle.ended() }

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
