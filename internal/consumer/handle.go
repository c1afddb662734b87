package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
)

// start has a goroutine handle a message, which is a worker then: one that waits for a message, else a
// new one. The stack of a new one has to grow for the settle: on SQLite that was a tenth of the work
// of a burst.
func (c *consumer) start(d Delivery) {
	ctx, cancel := context.WithCancelCause(c.handling)
	own := d.Limits()
	r := &run{d: d, maxAttempts: cmp.Or(own.Attempts, c.MaxAttempts), timeout: cmp.Or(own.HandlerTimeout, c.Timeout), cancel: cancel}
	d.Lease().Renewing()
	c.mu.Lock()
	c.running[r] = struct{}{}
	if c.renewing { // no other one begins before it has ended
		c.watchLeaseLocked(r)
	}
	if r.timeout > 0 {
		r.timer = c.Clock.AfterFunc(r.timeout, func() { c.timedOut(r) })
	}
	c.mu.Unlock()
	select {
	case c.jobs <- job{ctx, r}:
	default:
		go c.work(job{ctx, r})
	}
}

// work handles messages until the consumer has ended, a handler ends its goroutine, or as many others
// wait as there are workers.
func (c *consumer) work(j job) {
	for {
		c.handle(j.ctx, j.run)
		if c.waiting.Add(1) > int64(c.Workers) {
			c.waiting.Add(-1)
			return
		}
		select {
		case j = <-c.jobs:
			c.waiting.Add(-1)
		case <-c.ended:
			return
		}
	}
}

// timedOut ends the handler's context, and stops renewing the lease of a handler that ignores it.
func (c *consumer) timedOut(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, running := c.running[r]; running {
		r.cancel(ErrTimeout)
		r.timer = c.Clock.AfterFunc(obeyWithin, func() { c.abandon(r) })
	}
}

// abandon leaves the message to another worker when its lease ends, which is one lease from now even
// if the handler asked for more.
func (c *consumer) abandon(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, running := c.running[r]
	if running && r.d.Lease().Ended() { // perhaps the call that settles it fails
		if c.handling.Err() == nil {
			r.timer = c.Clock.AfterFunc(obeyWithin, func() { c.abandon(r) })
		}
	} else if running {
		r.abandoned = true
		r.d.Lease().Abandon()
		if !r.restoring { // else a repeated Extend might overtake the call
			c.shortenLocked(r)
		}
		c.Telemetry.Failed(c.handling, telemetry.IgnoredTimeout, 1)
		c.Log.Error("delayq: handler ignores its timeout; its message returns when the lease ends",
			"id", r.d.ID(), "attempt", r.d.Attempt(), "timeout", r.timeout)
	}
}

func (c *consumer) shortenLocked(r *run) {
	if c.handling.Err() == nil && !r.shortening { // else Run may have returned
		r.shortening = true
		c.returning.Go(func() { c.shorten(r) })
	}
}

// outlastsLocked reports whether the lease of an abandoned run would end later than it is to end: the
// call that made it shorter failed, or the handler's own Extend came after it.
func (c *consumer) outlastsLocked(r *run) bool {
	l := r.d.Lease()
	return r.abandoned && !r.lost && !r.restoring && !l.Ended() && l.Left(c.Clock.Now()) > c.Lease
}

// shorten makes the lease of an abandoned run end one lease from now, if it would end later.
func (c *consumer) shorten(r *run) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.shortening = false
	}()
	l, now := r.d.Lease(), c.Clock.Now()
	kept := now.Add(c.Lease)
	if _, later := l.Overtaken(kept); !later && l.Left(now) <= c.Lease {
		return
	}
	ctx, cancel := context.WithTimeout(c.giving, settleWithin)
	defer cancel()
	ends, errs := c.Store.Extend(ctx, []backend.Lease{l.Token()}, c.Lease)
	if err := cmp.Or(errs...); errors.Is(err, backend.ErrLeaseLost) {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.lost = true
	} else if err != nil {
		c.notRenewed(r, err)
	} else {
		l.Renew(ends[0], kept)
	}
}

func (c *consumer) handle(ctx context.Context, r *run) {
	var o decision
	var processing telemetry.Processing // does nothing before it is started
	defer func() {
		if o.action == "" { // the retry policy ended the goroutine
			f, after := exited, time.Second
			f.RetryAfter = &after
			o = c.decide(ctx, r, &f)
		}
		processing.Returned(ctx, o.kind, o.err)
		c.finish(ctx, r, processing, o)
	}()
	if err := r.d.Expired(); err != nil {
		o = decision{action: Expired, err: err, reason: err.Error()}
		return
	}
	if r.maxAttempts > 0 && r.d.Attempt() > r.maxAttempts {
		o = c.decide(ctx, r, abandoned(r.maxAttempts))
		c.Telemetry.Failed(ctx, o.kind, 1)
		return
	}
	if c.Telemetry != nil {
		now := c.Clock.Now()
		ctx, processing = c.Telemetry.StartProcess(ctx, r.d.Observed(now), now)
	}
	failure := &exited
	defer func() { o = c.decide(ctx, r, failure) }() // also when the handler ends its goroutine
	failure = c.call(ctx, r.d)
}

func (c *consumer) call(ctx context.Context, d Delivery) *Failure {
	err := c.Handle(ctx, d)
	if err == nil {
		return nil
	}
	f := c.Classify(err)
	return &f
}

// settledBy reports whether nothing is left to settle after a handler. One that has acknowledged its
// message in a transaction and failed may have rolled back.
func settledBy(l *lease.Lease, f *Failure) bool { return l.Ended() && (f == nil || !l.InTransaction()) }

func (c *consumer) decide(ctx context.Context, r *run, f *Failure) decision {
	e := ending{failure: f, settled: settledBy(r.d.Lease(), f), attempt: r.d.Attempt(), maxAttempts: r.maxAttempts, timeout: r.timeout}
	if f != nil {
		e.cause, e.held = context.Cause(ctx), r.d.Lease().Age(c.Clock.Now())
	}
	o := decide(e, func(err error) time.Duration { return c.askPolicy(r.d, err) })
	if o.delay < 0 || o.delay > c.MaxDelay {
		err := backend.Invalid("delay", o.delay, fmt.Sprintf("0 to %v", c.MaxDelay))
		c.Log.Error("delayq: retry policy or handler asks for a wrong delay", "id", r.d.ID(), "err", err)
		o.delay = min(max(o.delay, 0), c.MaxDelay)
	}
	return o
}

func (c *consumer) askPolicy(d Delivery, err error) (delay time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			c.Log.Error("delayq: retry policy panicked", "id", d.ID(), "panic", v, "stack", string(debug.Stack()))
			delay = c.Fallback(d.Attempt(), err)
		}
	}()
	return c.Retry(d.Attempt(), err)
}

// finish settles the message and has the worker take the next one, first where it need not wait
// for the store. The worker goes on whatever the user's logger does.
func (c *consumer) finish(ctx context.Context, r *run, processing telemetry.Processing, o decision) {
	if c.overlap() {
		c.leave(r)
		defer c.overlapped()
	} else {
		defer c.leave(r)
	}
	err := c.settle(ctx, r.d, o)
	died := err == nil && (o.action == Died || o.action == Expired)
	err = c.settled(ctx, r.d, err)
	processing.End(string(o.action), err)
	if died {
		c.reportDead(ctx, r.d, o)
	}
}

// reportDead calls OnDead with a context of its own, since the handler's may have ended.
func (c *consumer) reportDead(ctx context.Context, d Delivery, o decision) {
	if c.OnDead == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportWithin)
	defer cancel()
	c.OnDead(ctx, d, o.reason, o.err)
}

// leave ends a run and has its worker take the next message.
func (c *consumer) leave(r *run) {
	next := c.replace(r)
	r.cancel(nil)
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.leaseEnd != nil {
		r.leaseEnd.Stop()
	}
	if next != nil {
		c.start(next)
	}
}

// settlesOfWorker is how many settles may be under way for each worker that has gone on. On Redis a
// script serves 7 messages of a burst when 32 workers wait for their acks, 15 with one such ack
// each and 33 with four; a message costs server and client half as much then. More gains little.
const settlesOfWorker = 4

// settlesCombined is the same for a store that combines calls itself, as SQLite's writer does. With 16
// its transactions have more messages than with four, and a burst drains 8 % faster.
const settlesCombined = 16

// overlap reports whether a worker may take the next message before its message is settled, and
// counts the settle if so. A store that hangs stops the workers once the settles are too many. A
// consumer that claims nothing ahead has no more leases than workers.
func (c *consumer) overlap() bool {
	if c.ahead.limit == 0 || c.InProcess {
		return false
	}
	most := settlesOfWorker
	if c.Calls == backend.NoRoundTrip {
		most = settlesCombined
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	may := c.pendingAcks < most*c.Workers
	if may {
		c.pendingAcks++
	}
	return may
}

func (c *consumer) overlapped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pendingAcks--; c.pendingAcks == 0 {
		c.notify()
	}
}

// These bound a settle and a call of OnDead by contexts of their own, since the handler's may have
// ended.
const (
	settleWithin = 30 * time.Second
	reportWithin = 30 * time.Second
)

// settle carries out the decision, and returns the error of the call that settles the message.
func (c *consumer) settle(ctx context.Context, d Delivery, o decision) error {
	c.settles.Add(1)
	defer c.settles.Add(-1)
	c.logDecision(d, o)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	switch o.action {
	case Settled, Lost:
		return nil
	case Acked, Dropped:
		return d.Ack(ctx)
	case Returned:
		return d.Release(ctx)
	case Died:
		return d.Dead(ctx, o.reason)
	case Expired:
		err := d.Dead(ctx, o.reason)
		if err == nil {
			c.Telemetry.Expired(ctx, 1)
		}
		return err
	default:
		return d.Nack(ctx, o.delay)
	}
}

// logDecision is not a part of settle: its large frame would be on the stack of each settle. On Redis
// 32 workers drained a fifth less when the stack of a new goroutine grew once more.
func (c *consumer) logDecision(d Delivery, o decision) {
	switch {
	case o.action == Settled && o.err != nil:
		c.Log.Warn("delayq: handler settled the message and failed", "id", d.ID(), "err", o.err)
	case o.action == Lost:
		c.Log.Warn("delayq: handler lost its lease", "id", d.ID(), "attempt", d.Attempt(), "err", o.err)
	case o.action == Dropped:
		c.Log.Warn("delayq: handler dropped the message", "id", d.ID(), "attempt", d.Attempt(), "err", o.err)
	case o.action == Died:
		c.Log.Error("delayq: message is dead", "id", d.ID(), "attempt", d.Attempt(), "err", o.err)
	case o.action == Expired:
		c.Log.Debug("delayq: message expired", "id", d.ID(), "err", o.err)
	case o.action == Retried && o.stopped:
		c.Log.Warn("delayq: handler ran until it was stopped; the attempt counts", "id", d.ID(), "attempt", d.Attempt(), "err", o.err)
	case o.action == Retried:
		c.Log.Warn("delayq: handler failed", "id", d.ID(), "attempt", d.Attempt(), "retry", o.delay, "err", o.err)
	}
}

// settled logs an error that no caller learns of. The message comes back when its lease ends,
// unless the handler has settled it meanwhile.
func (c *consumer) settled(ctx context.Context, d Delivery, err error) error {
	if errors.Is(err, lease.ErrSettled) {
		return nil
	}
	if err != nil {
		c.Telemetry.Failed(ctx, telemetry.FailedSettle, 1)
		c.Log.Warn("delayq: settling failed", "id", d.ID(), "attempt", d.Attempt(), "err", err)
	}
	return err
}
