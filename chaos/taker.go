package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Taker takes messages and settles them, mostly with an ack.
func Taker(s *Stage, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		t := &taker{actor: newActor(s, proc, b), patience: waitAtMost}
		defer t.close()
		for ctx.Err() == nil && !s.Stopping.Load() {
			t.pause(ctx)
			t.reopen(ctx)
			if t.q != nil {
				t.round(ctx)
			}
		}
	}
}

type taker struct {
	*actor
	patience time.Duration // of a Receive
	late     []lateness
}

// lateness is a delivery that is settled later: when its lease has ended, or would have ended had it not been extended.
type lateness struct {
	held
	handle   int
	at       time.Time
	extended bool
}

// held is a delivery in a taker's hands.
type held struct {
	n     uint32
	lease backend.Lease
}

// waitAtMost bounds a Receive, so that takers look up once in a while.
const waitAtMost = 400 * time.Millisecond

// pauseAtMost bounds how long a taker pauses.
const pauseAtMost = 300 * time.Millisecond

// pause rests once in a while. Half of the times the handle is closed first, unless it has deliveries in hand.
func (t *taker) pause(ctx context.Context) {
	if !t.Pausing.Load() || !t.chance(t.Mix.Pause) {
		return
	}
	t.Paused.Add(1)
	if len(t.late) == 0 && t.dice.IntN(2) == 0 {
		t.close()
	}
	t.rest(ctx, jitter(t.dice, pauseAtMost))
}

func (t *taker) round(ctx context.Context) {
	lease := pick(t.dice, t.Mix.Leases)
	got := t.take(ctx, pick(t.dice, t.Mix.Batches), lease)
	if got == nil {
		t.rest(ctx, breath)
	}
	t.settle(ctx, got, lease)
	t.settleLate(ctx)
}

func (t *taker) take(ctx context.Context, limit int, lease time.Duration) (got []held) {
	t.call(ctx, t.patience, Call{Op: Take, Lease: int64(lease)}, func(ctx context.Context, c *Call) error {
		ds, err := t.q.Receive(ctx, limit, lease)
		for i := range ds {
			d := &ds[i]
			n, whole := recognize(d.Body, d.Headers, t.Traits.Supports(backend.Headers))
			if t.Traits.Supports(backend.OwnIDs) {
				whole = whole && d.ID == t.idOf(n)
			}
			got = append(got, held{n, d.Lease()})
			c.Items = append(c.Items, Item{
				N: n, Out: OK, Bad: !whole, Attempt: d.Attempt, Token: d.Token, Due: d.Due.UnixNano(), Until: d.Until.UnixNano(),
			})
		}
		return err
	})
	return got
}

// settle does to each message what the dice say.
func (t *taker) settle(ctx context.Context, got []held, lease time.Duration) {
	var acked, nacked, untouched, extended, buried []held
	for _, h := range got {
		switch t.fate() {
		case Ack:
			acked = append(acked, h)
		case Nack:
			nacked = append(nacked, h)
		case Move:
			untouched = append(untouched, h)
		case Extend:
			extended = append(extended, h)
		case Bury:
			buried = append(buried, h)
		case Seen: // late
			t.late = append(t.late, lateness{held: h, handle: t.handle, at: time.Now().Add(lease + jitter(t.dice, lease))})
		default: // abandoned
		}
	}
	t.ack(ctx, acked)
	t.nack(ctx, nacked, false)
	t.nack(ctx, untouched, true)
	t.bury(ctx, buried)
	t.keep(ctx, extended, lease)
}

// keep extends leases, and acknowledges half of the messages at once, and half when their leases would have ended.
func (t *taker) keep(ctx context.Context, hs []held, lease time.Duration) {
	if len(hs) == 0 {
		return
	}
	at := time.Now().Add(lease + breath)
	t.extend(ctx, hs, pick(t.dice, t.Mix.Leases)+lease)
	if t.dice.IntN(2) == 0 {
		t.ack(ctx, hs)
		return
	}
	for _, h := range hs {
		t.late = append(t.late, lateness{held: h, handle: t.handle, at: at, extended: true})
	}
}

// fate chooses; Move stands for untouched, Seen for late and Take for abandoned.
func (t *taker) fate() Op {
	if t.Draining.Load() {
		return Ack
	}
	r, m := t.dice.Float64(), &t.Mix
	for _, f := range [...]struct {
		p  float64
		op Op
	}{{m.Nack, Nack}, {m.Untouched, Move}, {m.Extend, Extend}, {m.Bury, Bury}, {m.Late, Seen}, {m.Abandon, Take}} {
		if r -= f.p; r < 0 {
			return f.op
		}
	}
	return Ack
}

// settleLate settles what it should have settled before.
func (t *taker) settleLate(ctx context.Context) {
	rest := t.late[:0]
	for _, l := range t.late {
		switch {
		case t.handle != l.handle || t.q == nil: // a lease is settled through the handle that received it
		case time.Now().Before(l.at):
			rest = append(rest, l)
		case l.extended:
			t.ack(ctx, []held{l.held})
		default:
			t.settleStale(ctx, []held{l.held})
		}
	}
	t.late = rest
}

func (t *taker) settleStale(ctx context.Context, h []held) {
	switch t.dice.IntN(4) {
	case 0:
		t.nack(ctx, h, false)
	case 1:
		t.bury(ctx, h)
	case 2:
		t.extend(ctx, h, pick(t.dice, t.Mix.Leases))
	default:
		t.ack(ctx, h)
	}
}

func leasesOf(hs []held) []backend.Lease {
	ls := make([]backend.Lease, len(hs))
	for i := range hs {
		ls[i] = hs[i].lease
	}
	return ls
}

// about is a call on messages under a lease.
func about(op Op, hs []held) Call {
	c := Call{Op: op, Items: make([]Item, len(hs))}
	for i, h := range hs {
		c.Items[i] = Item{N: h.n, Token: h.lease.Token}
	}
	return c
}

func (t *taker) ack(ctx context.Context, hs []held) {
	if len(hs) == 0 {
		return
	}
	t.call(ctx, callTime, about(Ack, hs), func(ctx context.Context, c *Call) error { return sortOut(c, t.q.Ack(ctx, leasesOf(hs))) })
}

func (t *taker) nack(ctx context.Context, hs []held, untouched bool) {
	if len(hs) == 0 {
		return
	}
	c := about(Nack, hs)
	rs := make([]backend.Return, len(hs))
	for i, h := range hs {
		rs[i] = backend.Return{Lease: h.lease, Untouched: untouched}
		c.Items[i].Untouched = untouched
		if !untouched && t.dice.IntN(3) > 0 {
			rs[i].Delay = jitter(t.dice, t.Mix.Delay)
			c.Items[i].Delay = int64(rs[i].Delay)
		}
	}
	t.call(ctx, callTime, c, func(ctx context.Context, c *Call) error { return sortOut(c, t.q.Nack(ctx, rs)) })
}

func (t *taker) bury(ctx context.Context, hs []held) {
	if len(hs) == 0 {
		return
	}
	bs := make([]backend.Burial, len(hs))
	for i, h := range hs {
		bs[i] = backend.Burial{Lease: h.lease, Reason: "buried by the plan"}
	}
	t.call(ctx, callTime, about(Bury, hs), func(ctx context.Context, c *Call) error { return sortOut(c, t.q.Dead(ctx, bs)) })
}

func (t *taker) extend(ctx context.Context, hs []held, lease time.Duration) {
	c := about(Extend, hs)
	c.Lease = int64(lease)
	t.call(ctx, callTime, c, func(ctx context.Context, c *Call) error {
		ends, errs := t.q.Extend(ctx, leasesOf(hs), lease)
		err := sortOut(c, errs)
		for i := range c.Items {
			if c.Items[i].Out == OK {
				c.Items[i].Until = ends[i].UnixNano()
			}
		}
		return err
	})
}
