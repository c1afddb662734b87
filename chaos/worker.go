package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Worker receives messages and settles them, mostly with an ack.
func Worker(e *Env, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		w := &worker{client: newClient(e, proc, b), patience: waitAtMost, kills: killsAtEnd}
		defer w.close()
		for ctx.Err() == nil && !e.Stopping.Load() {
			w.pause(ctx)
			w.reopen(ctx)
			if w.q != nil {
				w.round(ctx)
			}
		}
	}
}

type worker struct {
	*client
	patience time.Duration // of a Receive
	kills    int           // how many messages it still makes dead letters while draining
	later    []later
}

// killsAtEnd is how many messages each worker makes dead letters when the drain begins. No client
// redrives or deletes those, so every Stats of the drain has dead letters to count.
const killsAtEnd = 5

// held is a message that a worker has under a lease.
type held struct {
	n     uint32
	lease backend.Lease
}

// later is a message that is settled later: when its lease has ended, or would have ended had it not
// been extended.
type later struct {
	held
	handle   int
	at       time.Time
	extended bool
}

// waitAtMost bounds a Receive, so that workers see soon when they are to stop.
const waitAtMost = 400 * time.Millisecond

// pauseAtMost bounds how long a worker pauses.
const pauseAtMost = 300 * time.Millisecond

// pause rests once in a while. Half of the times the worker closes its handle first, unless it has
// messages.
func (w *worker) pause(ctx context.Context) {
	if !w.Pausing.Load() || !w.chance(w.Mix.Pause) {
		return
	}
	w.Paused.Add(1)
	if len(w.later) == 0 && w.dice.IntN(2) == 0 {
		w.close()
	}
	w.rest(ctx, jitter(w.dice, pauseAtMost))
}

func (w *worker) round(ctx context.Context) {
	lease := pick(w.dice, w.Mix.Leases)
	got := w.receive(ctx, pick(w.dice, w.Mix.Batches), lease)
	if got == nil {
		w.rest(ctx, breath)
	}
	w.settle(ctx, got, lease)
	w.settleLate(ctx)
}

func (w *worker) receive(ctx context.Context, limit int, lease time.Duration) (got []held) {
	w.call(ctx, w.patience, judge.Call{Op: judge.Receive, Lease: int64(lease)}, func(ctx context.Context, c *judge.Call) error {
		ds, err := w.q.Receive(ctx, limit, lease)
		for i := range ds {
			d := &ds[i]
			n, whole := recognize(d.Body, d.Headers, w.Traits.Supports(backend.Headers))
			if w.Traits.Supports(backend.OwnIDs) {
				whole = whole && d.ID == w.idOf(n)
			}
			got = append(got, held{n, d.Lease()})
			c.Items = append(c.Items, judge.Item{
				N: n, Out: judge.OK, Altered: !whole, Attempt: d.Attempt, Token: d.Token, Due: d.Due.UnixNano(), Until: d.Until.UnixNano(),
			})
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
	kill // make it a dead letter
	late // settle it when its lease has ended
	abandon
)

// choose draws an action by the mix.
func (w *worker) choose() action {
	if w.Draining.Load() {
		return ack
	}
	r, m := w.dice.Float64(), &w.Mix
	for a, p := range []float64{nack: m.Nack, untouched: m.Untouched, extend: m.Extend, kill: m.Dead, late: m.Late, abandon: m.Abandon} {
		if r -= p; r < 0 {
			return action(a)
		}
	}
	return ack
}

func (w *worker) settle(ctx context.Context, got []held, lease time.Duration) {
	if n := min(len(got), w.kills); n > 0 && w.Draining.Load() {
		w.kills -= w.kill(ctx, got[:n])
		got = got[n:]
	}
	by := make(map[action][]held)
	for _, h := range got {
		a := w.choose()
		by[a] = append(by[a], h)
		if a == late {
			w.later = append(w.later, later{held: h, handle: w.handle, at: time.Now().Add(lease + jitter(w.dice, lease))})
		}
	}
	w.ack(ctx, by[ack])
	w.nack(ctx, by[nack], false)
	w.nack(ctx, by[untouched], true)
	w.kill(ctx, by[kill])
	w.extendThenAck(ctx, by[extend], lease)
}

// extendThenAck extends leases, and acknowledges half of the batches at once, and half when their
// leases would have ended.
func (w *worker) extendThenAck(ctx context.Context, hs []held, lease time.Duration) {
	if len(hs) == 0 {
		return
	}
	at := time.Now().Add(lease + breath)
	w.extend(ctx, hs, pick(w.dice, w.Mix.Leases)+lease)
	if w.dice.IntN(2) == 0 {
		w.ack(ctx, hs)
		return
	}
	for _, h := range hs {
		w.later = append(w.later, later{held: h, handle: w.handle, at: at, extended: true})
	}
}

func (w *worker) settleLate(ctx context.Context) {
	rest := w.later[:0]
	for _, l := range w.later {
		h := []held{l.held}
		switch {
		case w.handle != l.handle || w.q == nil: // a lease is settled through the handle that received it
		case time.Now().Before(l.at):
			rest = append(rest, l)
		case l.extended:
			w.ack(ctx, h)
		default:
			switch w.dice.IntN(4) {
			case 0:
				w.nack(ctx, h, false)
			case 1:
				w.kill(ctx, h)
			case 2:
				w.extend(ctx, h, pick(w.dice, w.Mix.Leases))
			default:
				w.ack(ctx, h)
			}
		}
	}
	w.later = rest
}

func leasesOf(hs []held) []backend.Lease {
	return each(hs, func(h held) backend.Lease { return h.lease })
}

// callOn is a call on messages under a lease.
func callOn(op judge.Op, hs []held) judge.Call {
	return judge.Call{Op: op, Items: each(hs, func(h held) judge.Item { return judge.Item{N: h.n, Token: h.lease.Token} })}
}

func (w *worker) ack(ctx context.Context, hs []held) {
	w.batch(ctx, callOn(judge.Ack, hs), func(ctx context.Context) []error { return w.q.Ack(ctx, leasesOf(hs)) })
}

func (w *worker) nack(ctx context.Context, hs []held, untouched bool) {
	c := callOn(judge.Nack, hs)
	rs := make([]backend.Return, len(hs))
	for i, h := range hs {
		rs[i] = backend.Return{Lease: h.lease, Untouched: untouched}
		c.Items[i].Untouched = untouched
		if !untouched && w.dice.IntN(3) > 0 {
			rs[i].Delay = jitter(w.dice, w.Mix.Delay)
			c.Items[i].Delay = int64(rs[i].Delay)
		}
	}
	w.batch(ctx, c, func(ctx context.Context) []error { return w.q.Nack(ctx, rs) })
}

func (w *worker) kill(ctx context.Context, hs []held) (killed int) {
	bs := each(hs, func(h held) backend.DeadLetterRequest {
		return backend.DeadLetterRequest{Lease: h.lease, Reason: "by the plan"}
	})
	c := w.batch(ctx, callOn(judge.Dead, hs), func(ctx context.Context) []error { return w.q.Dead(ctx, bs) })
	for _, it := range c.Items {
		if it.Out == judge.OK {
			killed++
		}
	}
	return killed
}

func (w *worker) extend(ctx context.Context, hs []held, lease time.Duration) {
	c := callOn(judge.Extend, hs)
	c.Lease = int64(lease)
	w.call(ctx, callTime, c, func(ctx context.Context, c *judge.Call) error {
		ends, errs := w.q.Extend(ctx, leasesOf(hs), lease)
		err := c.SetOutcomes(errs)
		for i := range c.Items {
			if c.Items[i].Out == judge.OK {
				c.Items[i].Until = ends[i].UnixNano()
			}
		}
		return err
	})
}
