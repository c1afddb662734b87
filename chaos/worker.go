package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Worker receives messages and settles them, mostly with an ack.
func Worker(e *Env, proc int) Run {
	return func(ctx context.Context, b backend.Backend) {
		w := &worker{client: newClient(e, proc, b), wait: maxWait, deadAtDrain: deadAtDrain}
		defer w.close()
		for ctx.Err() == nil && !e.Stopping.Load() {
			w.pause(ctx)
			if w.reopen(ctx) {
				w.round(ctx)
			}
		}
	}
}

type worker struct {
	*client
	wait        time.Duration // of a Receive
	deadAtDrain int           // messages that it still makes dead letters while draining
	later       []later
}

// deadAtDrain is the number of messages that each worker makes dead letters when the drain begins.
// No client redrives or deletes those, so every Stats of the drain has dead letters to count.
const deadAtDrain = 5

const (
	maxWait  = 400 * time.Millisecond // of a Receive, so that workers soon see that they have to stop
	maxPause = 300 * time.Millisecond
)

// delivery is a message that a worker has under a lease.
type delivery struct {
	n     uint32
	lease backend.Lease
}

// later is a delivery that is settled when its lease has ended, or would have ended without an
// extension.
type later struct {
	delivery
	handle   int
	at       time.Time
	extended bool
}

// pause rests once in a while. Half of the times the worker closes its handle first, unless it has
// messages.
func (w *worker) pause(ctx context.Context) {
	if !w.Pausing.Load() || !w.chance(w.Mix.Pause) {
		return
	}
	w.Paused.Add(1)
	if len(w.later) == 0 && w.rng.IntN(2) == 0 {
		w.close()
	}
	w.rest(ctx, jitter(w.rng, maxPause))
}

func (w *worker) round(ctx context.Context) {
	lease := pick(w.rng, w.Mix.Leases)
	got := w.receive(ctx, pick(w.rng, w.Mix.Batches), lease)
	if got == nil {
		w.rest(ctx, shortPause)
	}
	w.settle(ctx, got, lease)
	w.settleLate(ctx)
}

func (w *worker) receive(ctx context.Context, limit int, lease time.Duration) (got []delivery) {
	w.call(ctx, w.wait, judge.Call{Op: judge.Receive, Lease: int64(lease)}, func(ctx context.Context, c *judge.Call) error {
		ds, err := w.q.Receive(ctx, limit, lease)
		for i := range ds {
			it := w.delivered(&ds[i])
			got = append(got, delivery{it.N, ds[i].Lease()})
			c.Items = append(c.Items, it)
		}
		return err
	})
	return got
}

// action is what a worker does with a message.
type action int

const (
	ack action = iota
	nack
	untouched
	extend
	deadLetter
	late // settle it when its lease has ended
	abandon
)

// choose draws an action by the mix.
func (w *worker) choose() action {
	if w.Draining.Load() {
		return ack
	}
	r, m := w.rng.Float64(), &w.Mix
	for a, p := range []float64{nack: m.Nack, untouched: m.Untouched, extend: m.Extend, deadLetter: m.Dead, late: m.Late, abandon: m.Abandon} {
		if r -= p; r < 0 {
			return action(a)
		}
	}
	return ack
}

func (w *worker) settle(ctx context.Context, got []delivery, lease time.Duration) {
	if n := min(len(got), w.deadAtDrain); n > 0 && w.Draining.Load() {
		w.deadAtDrain -= w.deadLetter(ctx, got[:n])
		got = got[n:]
	}
	replaced := w.replaceHeld(ctx, got)
	by := make(map[action][]delivery)
	for _, d := range got {
		a := w.choose()
		if replaced[d.n] {
			a = action(w.rng.IntN(int(abandon) + 1)) // each has a meaning of its own now
		}
		by[a] = append(by[a], d)
		if a == late {
			w.later = append(w.later, later{delivery: d, handle: w.handle, at: time.Now().Add(lease + jitter(w.rng, lease))})
		}
	}
	w.ack(ctx, by[ack])
	w.nack(ctx, by[nack], false)
	w.nack(ctx, by[untouched], true)
	w.deadLetter(ctx, by[deadLetter])
	w.extendThenAck(ctx, by[extend], lease)
}

// replaceHeld replaces some of the messages that the worker holds, and returns their numbers.
func (w *worker) replaceHeld(ctx context.Context, got []delivery) map[uint32]bool {
	if w.Draining.Load() || w.WorkerContents == nil || !w.Traits.Supports(backend.ReplacingInFlight) {
		return nil
	}
	var r replacement
	replaced := make(map[uint32]bool)
	for _, d := range got {
		if d.n == 0 || !w.chance(w.Mix.ReplaceHeld) {
			continue
		}
		if content, ok := w.WorkerContents.next(d.n); ok {
			r.add(w.client, d.n, content, true)
			replaced[d.n] = true
		}
	}
	r.push(ctx, w.client)
	return replaced
}

// extendThenAck extends leases. It acks half of the batches at once, and the other half when their
// leases would have ended.
func (w *worker) extendThenAck(ctx context.Context, ds []delivery, lease time.Duration) {
	if len(ds) == 0 {
		return
	}
	at := time.Now().Add(lease + shortPause)
	w.extend(ctx, ds, pick(w.rng, w.Mix.Leases)+lease)
	if w.rng.IntN(2) == 0 {
		w.ack(ctx, ds)
		return
	}
	for _, d := range ds {
		w.later = append(w.later, later{delivery: d, handle: w.handle, at: at, extended: true})
	}
}

func (w *worker) settleLate(ctx context.Context) {
	rest := w.later[:0]
	for _, l := range w.later {
		one := []delivery{l.delivery}
		switch {
		case w.handle != l.handle || w.q == nil: // only the handle that received it settles a lease
		case time.Now().Before(l.at):
			rest = append(rest, l)
		case l.extended:
			w.ack(ctx, one)
		default:
			switch w.rng.IntN(4) {
			case 0:
				w.nack(ctx, one, false)
			case 1:
				w.deadLetter(ctx, one)
			case 2:
				w.extend(ctx, one, pick(w.rng, w.Mix.Leases))
			default:
				w.ack(ctx, one)
			}
		}
	}
	w.later = rest
}

func leasesOf(ds []delivery) []backend.Lease {
	return each(ds, func(d delivery) backend.Lease { return d.lease })
}

// callOn is a call on deliveries.
func callOn(op judge.Op, ds []delivery) judge.Call {
	return judge.Call{Op: op, Items: each(ds, func(d delivery) judge.Item { return judge.Item{N: d.n, Token: d.lease.Token} })}
}

func (w *worker) ack(ctx context.Context, ds []delivery) {
	w.batch(ctx, callOn(judge.Ack, ds), func(ctx context.Context) []error { return w.q.Ack(ctx, leasesOf(ds)) })
}

func (w *worker) nack(ctx context.Context, ds []delivery, untouched bool) {
	c := callOn(judge.Nack, ds)
	rs := make([]backend.Return, len(ds))
	for i, d := range ds {
		rs[i] = backend.Return{Lease: d.lease, Untouched: untouched}
		c.Items[i].Untouched = untouched
		if !untouched && w.rng.IntN(3) > 0 {
			rs[i].Delay = jitter(w.rng, w.Mix.Delay)
			c.Items[i].Delay = int64(rs[i].Delay)
		}
	}
	w.batch(ctx, c, func(ctx context.Context) []error { return w.q.Nack(ctx, rs) })
}

func (w *worker) deadLetter(ctx context.Context, ds []delivery) (done int) {
	requests := each(ds, func(d delivery) backend.DeadLetterRequest {
		return backend.DeadLetterRequest{Lease: d.lease, Reason: "by the plan"}
	})
	c := w.batch(ctx, callOn(judge.Dead, ds), func(ctx context.Context) []error { return w.q.Dead(ctx, requests) })
	for _, it := range c.Items {
		done += count(it.Out == judge.OK)
	}
	return done
}

func count(happened bool) int {
	if happened {
		return 1
	}
	return 0
}

func (w *worker) extend(ctx context.Context, ds []delivery, lease time.Duration) {
	c := callOn(judge.Extend, ds)
	c.Lease = int64(lease)
	w.call(ctx, callTime, c, func(ctx context.Context, c *judge.Call) error {
		ends, errs := w.q.Extend(ctx, leasesOf(ds), lease)
		err := c.SetOutcomes(errs)
		for i := range c.Items {
			if c.Items[i].Out == judge.OK {
				c.Items[i].Until = ends[i].UnixNano()
			}
		}
		return err
	})
}
