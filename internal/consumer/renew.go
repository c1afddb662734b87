package consumer

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
)

// renewals is how often a lease is renewed in its length: two renewals may fail before it is lost.
const renewals = 3

// keepRenewing extends the leases of all messages being handled, in one call each time, until stop
// is called. Its ticker is set when it returns, so that no lease begins before.
func (c *consumer) keepRenewing(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	t := c.Clock.NewTicker(c.Lease / renewals)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.Stop()
		for ctx.Err() == nil {
			select {
			case <-t.Chan():
				c.renewAll(ctx)
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		c.restores.Wait()
	}
}

func (c *consumer) renewAll(ctx context.Context) {
	kept := c.Clock.Now().Add(c.Lease)
	rs, ls := c.renewable(kept)
	if len(rs) == 0 {
		return
	}
	defer c.endRenewal()
	renewing, cancel := context.WithTimeout(ctx, c.renewWithin())
	defer cancel()
	ends, errs := c.Store.Extend(renewing, lease.Tokens(ls), c.Lease)
	for i, r := range rs {
		if errs == nil || errs[i] == nil {
			ls[i].Renew(ends[i], kept)
		} else {
			c.notRenewed(r, errs[i])
		}
	}
	for i, r := range rs {
		if errs == nil || errs[i] == nil {
			c.restore(ctx, r)
		}
	}
}

// renewWithin bounds a call that extends leases.
func (c *consumer) renewWithin() time.Duration { return max(c.Lease/renewals, time.Second) }

// renewable returns the runs whose leases a renewal to kept makes longer, and watches these leases:
// the renewal may fail, or take longer than they last.
func (c *consumer) renewable(kept time.Time) (rs []*run, ls []*lease.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.running {
		if c.outlastsLocked(r) {
			c.shortenLocked(r)
		}
		if l := r.d.Lease(); !r.abandoned && l.Renewable(kept) {
			rs, ls = append(rs, r), append(ls, l)
			c.watchLeaseLocked(r)
		}
	}
	c.renewing = len(rs) > 0
	return rs, ls
}

func (c *consumer) endRenewal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewing = false
}

// watchLeaseLocked has leaseEnded called at the end of a run's lease.
func (c *consumer) watchLeaseLocked(r *run) {
	left := r.d.Lease().Left(c.Clock.Now())
	if r.leaseEnd == nil {
		r.leaseEnd = c.Clock.AfterFunc(left, func() { c.leaseEnded(r) })
	} else {
		r.leaseEnd.Reset(left)
	}
}

// leaseEnded stops the handler of a message whose lease has ended by the queue's own clock, and
// watches one that was made longer.
func (c *consumer) leaseEnded(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, running := c.running[r]; !running || r.lost || c.handling.Err() != nil {
		return
	}
	if r.d.Lease().Expired(c.Clock.Now()) {
		c.stopHandlerLocked(r)
	} else {
		c.watchLeaseLocked(r)
	}
}

// restore has a handler's Extend repeated that was made while a renewal was on its way, since the
// renewal may have undone it. It does not wait for the store: other leases have to be renewed.
func (c *consumer) restore(ctx context.Context, r *run) {
	if !c.overtaken(r) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.undone = true
	if !r.restoring && !r.abandoned {
		r.restoring = true
		c.restores.Go(func() {
			for c.undone(r) {
				c.extendAgain(ctx, r)
			}
		})
	}
}

// overtaken reports whether a handler asked for a later end than a renewal gives, and still has its
// message.
func (c *consumer) overtaken(r *run) bool {
	_, later := r.d.Lease().Overtaken(c.Clock.Now().Add(c.Lease))
	return later && !r.d.Lease().Ended()
}

// undone reports whether a renewal may have undone the handler's Extend since the last repetition. It
// begins what abandon left to the end of the repetitions.
func (c *consumer) undone(r *run) bool {
	later := c.overtaken(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, running := c.running[r]
	if running && r.abandoned {
		c.shortenLocked(r)
	}
	r.restoring = r.undone && later && running && !r.abandoned
	r.undone = false
	return r.restoring
}

func (c *consumer) extendAgain(ctx context.Context, r *run) {
	ctx, cancel := context.WithTimeout(ctx, c.renewWithin())
	defer cancel()
	l, now := r.d.Lease(), c.Clock.Now()
	asked, _ := l.Overtaken(now)
	if err := cmp.Or(c.Extend(ctx, []*lease.Lease{l}, asked.Sub(now))...); err != nil {
		c.notRenewed(r, err)
	}
}

// notRenewed stops the handler of a message whose lease is lost. Where the store cannot be reached,
// leaseEnded does so.
func (c *consumer) notRenewed(r *run, err error) {
	switch {
	case errors.Is(err, backend.ErrLeaseLost):
		c.stopHandler(r)
	case errors.Is(err, context.Canceled): // the consumer has ended
	case errors.Is(err, lease.ErrSettled): // by the handler, meanwhile
	default:
		c.Telemetry.Failed(c.handling, telemetry.FailedRenew, 1)
		c.Log.Warn("delayq: renewing a lease failed", "id", r.d.ID(), "err", err)
	}
}

// stopHandler ends the context of a handler whose lease is lost.
func (c *consumer) stopHandler(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopHandlerLocked(r)
}

func (c *consumer) stopHandlerLocked(r *run) {
	if _, running := c.running[r]; running && !r.lost && !r.abandoned && !r.d.Lease().Ended() {
		r.lost = true
		r.cancel(backend.ErrLeaseLost)
		c.Telemetry.Failed(c.handling, telemetry.FailedLeaseLost, 1)
		c.Log.Warn("delayq: a lease is lost while its handler runs; another worker may have the message",
			"id", r.d.ID(), "attempt", r.d.Attempt())
	}
}
