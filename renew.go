package delayq

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

// renewals is how often a lease is renewed in its length: two may fail before it is lost.
const renewals = 3

// keepRenewing extends the leases of all messages being handled, in one call each time, until it
// is stopped. It has set its ticker when it returns, so that no lease is taken before.
func (c *consumer) keepRenewing(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	t := c.clock.NewTicker(c.lease / renewals)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.Stop()
		c.renew(ctx, t.Chan())
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (c *consumer) renew(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			c.renewAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (c *consumer) renewAll(ctx context.Context) {
	kept := c.clock.Now().Add(c.lease)
	ds, ls := c.held(kept)
	if len(ds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(c.lease/renewals, time.Second))
	defer cancel()
	ends, errs := c.store.Extend(ctx, ls, c.lease)
	for i, d := range ds {
		if errs == nil || errs[i] == nil {
			d.keep(ends[i], kept)
			c.restore(ctx, d, kept)
		} else {
			c.notRenewed(d, errs[i])
		}
	}
}

// restore repeats an extension to later than a renewal to kept that may have undone it: it was made while the renewal was on its way.
func (c *consumer) restore(ctx context.Context, d *Delivery, kept time.Time) {
	if asked := time.Unix(0, d.asked.Load()); asked.After(kept) {
		if err := one(c.extend(ctx, []*Delivery{d}, asked.Sub(c.clock.Now()))); err != nil {
			c.notRenewed(d, err)
		}
	}
}

// notRenewed stops the handler of a lost message. A store that cannot be asked has given the
// message to another worker once the lease is over.
func (c *consumer) notRenewed(d *Delivery, err error) {
	switch {
	case errors.Is(err, ErrLeaseLost):
		c.stopHandler(d)
		return
	case errors.Is(err, context.Canceled): // the consumer has ended
		return
	}
	c.telemetry.Failed(c.handling, telemetry.FailedRenew, 1)
	c.log.Warn("delayq: renewing a lease failed", "id", d.ID, "err", err)
	if c.clock.Now().UnixNano() >= d.kept.Load() {
		c.stopHandler(d)
	}
}

// held returns the messages being handled whose leases end before kept.
func (c *consumer) held(kept time.Time) (ds []*Delivery, ls []backend.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d, r := range c.running {
		if !d.ended() && !r.forsaken && d.asked.Load() < kept.UnixNano() {
			ds = append(ds, d)
			ls = append(ls, d.lease)
		}
	}
	return ds, ls
}

// stopHandler ends the context of a handler whose message is no longer its own.
func (c *consumer) stopHandler(d *Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[d]; r != nil && !r.lost && !d.ended() {
		r.lost = true
		r.cancel(ErrLeaseLost)
		c.telemetry.Failed(c.handling, telemetry.FailedLeaseLost, 1)
		c.log.Warn("delayq: a lease is lost while its handler runs; another worker may have the message", "id", d.ID, "attempt", d.Attempt)
	}
}
