package delayq

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Delivery is a message in a worker's hands, until it is settled with Ack, Nack or Dead or
// its lease ends. Its methods are safe for concurrent use and answer [ErrLeaseLost], having
// changed nothing, when the message is no longer the caller's: the lease ended or the message
// is settled.
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
	until   atomic.Int64 // nanoseconds since 1970
	settled atomic.Bool
}

func (d *Delivery) take(q *queue, got *backend.Delivery) {
	d.ID, d.Body, d.Headers, d.Due, d.Attempt = got.ID, got.Body, got.Headers, got.Due, got.Attempt
	d.q, d.lease = q, got.Lease()
	d.until.Store(got.Until.UnixNano())
}

// LeaseUntil returns when the lease ends by the store's clock. It moves as the lease is extended.
func (d *Delivery) LeaseUntil() time.Time { return time.Unix(0, d.until.Load()).UTC() }

// Ack says that the message is done. It is deleted.
func (d *Delivery) Ack(ctx context.Context) error {
	if err := validContext(ctx); err != nil {
		return d.fail("ack", err)
	}
	return d.settle("ack", one(d.q.store.Ack(ctx, []backend.Lease{d.lease})))
}

// Nack gives the message back, to be due again after delay, 0 to a hundred years.
func (d *Delivery) Nack(ctx context.Context, delay time.Duration) error {
	if err := firstError(validContext(ctx), validDelay(delay, d.q.traits)); err != nil {
		return d.fail("nack", err)
	}
	return d.giveBack(ctx, backend.Return{Lease: d.lease, Delay: delay})
}

// handBack gives the message back as if nobody had had it.
func (d *Delivery) handBack(ctx context.Context) error {
	return d.giveBack(ctx, backend.Return{Lease: d.lease, Untouched: true})
}

func (d *Delivery) giveBack(ctx context.Context, r backend.Return) error {
	return d.settle("nack", one(d.q.store.Nack(ctx, []backend.Return{r})))
}

// Extend makes the lease end that long from now, 1 ms to 24 h. Consume does it by itself.
func (d *Delivery) Extend(ctx context.Context, lease time.Duration) error {
	if err := firstError(validContext(ctx), validLease("lease", lease)); err != nil {
		return d.fail("extend", err)
	}
	ends, errs := d.q.store.Extend(ctx, []backend.Lease{d.lease}, lease)
	if err := one(errs); err != nil {
		return d.fail("extend", err)
	}
	d.until.Store(ends[0].UnixNano())
	return nil
}

// Dead makes the message a dead letter, to be looked at with [Queue.Dead]. A reason of more
// than 16 KiB is cut.
func (d *Delivery) Dead(ctx context.Context, reason string) error {
	if err := validContext(ctx); err != nil {
		return d.fail("dead", err)
	}
	reason = reason[:min(len(reason), backend.MaxReason)]
	return d.settle("dead", one(d.q.store.Dead(ctx, []backend.Burial{{Lease: d.lease, Reason: reason}})))
}

func (d *Delivery) settle(op string, err error) error {
	if err == nil {
		d.settled.Store(true)
	}
	return d.fail(op, err)
}

func (d *Delivery) fail(op string, err error) error { return d.q.fail(op, d.ID, err) }

// String helps a %v in a log; it leaves the body out.
func (d *Delivery) String() string {
	return fmt.Sprintf("message %s, attempt %d, due %s", d.ID, d.Attempt, d.Due.Format(time.RFC3339Nano))
}
