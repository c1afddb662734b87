package conformance

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Limits of a message, which the library stores as a header.
var ownLimitChecks = []Check{
	{
		Name: "own-limits", Invariant: 9, needs: []backend.Feature{backend.KeepingHeaders, backend.CountingAttempts, backend.Redriving},
		Rule: "A message with a number of attempts of its own is dead after exactly these, whatever MaxAttempts says, and its handler has the message's own timeout; " +
			"it keeps both when it is given back with new headers and when it is redriven.",
		run: ownLimits,
	},
	{
		Name: "expires", Invariant: 2, needs: []backend.Feature{backend.KeepingHeaders},
		Rule: "A message is handed out until it expires and never after: it is deleted then, or a dead letter where its pusher asked for that. " +
			"ExpiresAfter counts from the due time, that of a retry too; a message that was given back untouched keeps its due time.",
		run: expires,
	},
}

func ownLimits(t *testRun) {
	const attempts = 2
	q := t.portable(delayq.WithLease(t.longLease()))
	id, err := q.Push(t.ctx, []byte("body"), delayq.Attempts(attempts), delayq.HandlerTimeout(t.Tick), delayq.Header("old", "1"))
	t.must(err, "Push")
	d, err := q.Receive(t.ctx)
	t.must(err, "Receive")
	var opts []delayq.NackOption
	if t.has(backend.ChangingHeaders) {
		opts = append(opts, delayq.NackHeaders(map[string]string{"new": "2"}))
	}
	t.must(d.Nack(t.ctx, 0, opts...), "Nack")
	t.diesByItsLimits(q, id, attempts-1)
	t.must(q.Dead().Redrive(t.ctx, id), "Redrive")
	t.diesByItsLimits(q, id, attempts)
	t.must(q.Dead().Delete(t.ctx, id), "Delete")
}

// diesByItsLimits runs a consumer with other limits until the message is dead. It has that many
// attempts left.
func (t *testRun) diesByItsLimits(q delayq.Queue, id string, attempts int64) {
	var handled, timeouts atomic.Int64
	t.consumeUntilDead(func(ctx context.Context, _ *delayq.Delivery) error {
		handled.Add(1)
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), delayq.ErrTimeout) {
			timeouts.Add(1)
		}
		return ctx.Err()
	}, delayq.MaxAttempts(1), delayq.Timeout(t.longLease()), delayq.Drain(0), delayq.Retry(t.backoff()))
	t.handledTimes(handled.Load(), attempts)
	if n := timeouts.Load(); n != attempts {
		t.fail("%d of %d handlers ended with the message's own timeout", n, attempts)
	}
	l, err := letterOf(t.ctx, q, id)
	t.must(err, "listing")
	if l.Limits == nil || l.Limits.HandlerTimeout != t.Tick {
		t.fail("the dead letter has the limits %+v", l.Limits)
	}
}

// expires has four messages that come in time. Afterwards only one that was retried does.
func expires(t *testRun) {
	// the store rounds the end of this lease up: that must not make a message look older
	q := t.portable(delayq.WithLease(t.longLease() - t.traits.Resolution/2))
	life := 2*t.Tick + t.late()
	push := func(name string, opts ...delayq.PushOption) {
		_, err := q.Push(t.ctx, []byte(name), opts...)
		t.must(err, "Push")
	}
	push("deleted", delayq.ExpiresAfter(life))
	push("dead", delayq.ExpiresAfter(life), delayq.DeadLetterExpired())
	push("by time", delayq.Expires(t.now().Add(life)))
	push("retried", delayq.ExpiresAfter(life))
	if t.fake != nil {
		t.pass(life) // the last moment
	}
	var all []*delayq.Delivery
	for len(all) < 4 {
		some, err := q.ReceiveBatch(t.ctx, 4)
		t.must(err, "ReceiveBatch")
		all = append(all, some...)
	}
	retry := slices.IndexFunc(all, func(d *delayq.Delivery) bool { return string(d.Body) == "retried" })
	t.must(all[retry].Nack(t.ctx, 2*life), "Nack")
	t.must(q.ReleaseBatch(t.ctx, slices.Delete(all, retry, retry+1)), "ReleaseBatch")
	t.expire(life)
	t.isNext(q, "a sound one", push)
	t.pass(life)
	t.grace()
	d, err := q.Receive(t.ctx)
	t.must(err, "Receive")
	if string(d.Body) != "retried" {
		t.fail("message %q was handed out; only the retried one has not expired", d.Body)
	}
	t.must(d.Nack(t.ctx, 0), "Nack")
	t.expire(life)
	push("another")
	var handled atomic.Int64
	var wrong atomic.Pointer[string]
	t.consume(func(_ context.Context, d *delayq.Delivery) error {
		if name := string(d.Body); name != "another" {
			wrong.Store(&name)
		}
		handled.Add(1)
		return nil
	}, func() bool { return handled.Load() > 0 && (t.has(backend.Ordering) || t.onlyDead()) })
	if name := wrong.Load(); name != nil {
		t.fail("a handler got message %q, which had expired", *name)
	}
	t.nothing("the others have expired")
	t.onlyOneExpiredIsLeft(q)
}

// expire lets time pass until messages that live that long from now on have expired by the store's
// clock.
func (t *testRun) expire(life time.Duration) {
	t.pass(life + t.Skew + 2*t.traits.Resolution + time.Millisecond)
}

// isNext pushes a message that is due after all others, and receives it.
func (t *testRun) isNext(q delayq.Queue, name string, push func(name string, opts ...delayq.PushOption)) {
	push(name)
	d, err := q.Receive(t.ctx)
	t.must(err, "Receive")
	if string(d.Body) != name {
		t.fail("message %q was handed out after it had expired", d.Body)
	}
	t.must(d.Ack(t.ctx), "Ack")
}

// onlyDead reports whether all messages are dead, as far as the store can tell: without order those that
// have expired may come last.
func (t *testRun) onlyDead() bool {
	if !t.has(backend.CountingScheduled) {
		return true
	}
	s := t.stats()
	return s.Scheduled+s.Ready+s.InFlight == 0
}

func (t *testRun) onlyOneExpiredIsLeft(q delayq.Queue) {
	if t.has(backend.CountingScheduled) {
		if s := t.stats(); s.Scheduled+s.Ready+s.InFlight != 0 || s.Dead != 1 {
			t.fail("Stats returns %s; want one dead letter", countsOf(s))
		}
	}
	if !t.has(backend.Redriving) {
		return
	}
	ls, _, err := q.Dead().List(t.ctx, "", 10)
	t.must(err, "List")
	if len(ls) != 1 || string(ls[0].Body) != "dead" || ls[0].Reason != delayq.ErrExpired.Error() {
		t.fail("the dead letters are %+v; want the expired one", ls)
	}
	t.must(q.Dead().Delete(t.ctx, ls[0].ID), "Delete")
}
