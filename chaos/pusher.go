package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
)

// Pusher pushes a number of messages a second, and takes some back or moves them.
func Pusher(s *Stage, proc int, rate float64) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		p := &pusher{actor: newActor(s, proc, b), rate: rate}
		defer p.close()
		p.began = time.Now()
		for ctx.Err() == nil && !s.Draining.Load() && !s.Stopping.Load() {
			p.reopen(ctx)
			if p.q != nil && !p.round(ctx) {
				return
			}
		}
	}
}

type pusher struct {
	*actor
	rate   float64
	began  time.Time
	pushed int
	known  []named // of the last round
	second []second
}

// second is a second thought about some messages.
type second struct {
	at               time.Time
	cancelled, moved []named
}

// named is a message that can be called by its id.
type named struct {
	n  uint32
	id string
}

// round reports false when there are no numbers left.
func (p *pusher) round(ctx context.Context) bool {
	size := pick(p.dice, p.Mix.Batches)
	first, ok := p.Numbers.take(size)
	if !ok {
		return false
	}
	c := p.push(ctx, first, size)
	p.doubt()
	p.regret(ctx)
	if p.chance(p.Mix.Again*float64(size)) && p.Traits.Supports(backend.Deduplicating) {
		p.push(ctx, first+uint32(p.dice.IntN(size)), 1)
	}
	if c.Err != "" {
		p.rest(ctx, breath)
	}
	p.pushed += size
	if ahead := time.Duration(float64(p.pushed)/p.rate*1e9) - time.Since(p.began); ahead > 0 {
		p.rest(ctx, ahead)
	} else if ahead < -time.Second { // what could not be pushed in time is not made up for
		p.began = p.began.Add(-ahead)
	}
	return true
}

// idOf is a message's id, where it is the pusher's. On the queue beside it is that of the message before, which is mostly one of the other queue.
func (s *Stage) idOf(n uint32) string {
	if s.Aside {
		n--
	}
	return idOf(n)
}

func idOf(n uint32) string { return fmt.Sprintf("m%d", n) }

func (p *pusher) push(ctx context.Context, first uint32, size int) Call {
	ms, c := make([]backend.Message, size), Call{Op: Push, Items: make([]Item, size)}
	for i := range ms {
		n := first + uint32(i)
		ms[i], c.Items[i] = backend.Message{ID: p.idOf(n), Body: bodyOf(n)}, Item{N: n}
		if p.Traits.Supports(backend.Headers) {
			ms[i].Headers = headersOf(n)
		}
		p.when(&ms[i], &c.Items[i])
	}
	p.known = p.known[:0]
	return p.call(ctx, callTime, c, func(ctx context.Context, c *Call) error {
		err := sortOut(c, p.q.Schedule(ctx, ms))
		for i := range ms {
			if c.Items[i].Out == OK {
				p.known = append(p.known, named{c.Items[i].N, ms[i].ID})
			}
		}
		return err
	})
}

// when sets a due time: at once, after a delay, or at a time.
func (p *pusher) when(m *backend.Message, it *Item) {
	delay := time.Duration(p.dice.Int64N(int64(p.Mix.Delay)))
	switch p.dice.IntN(10) {
	case 0:
	case 1:
		due := time.Now().Add(p.Shift + delay)
		m.Due, it.Due = due, due.UnixNano()
	default:
		m.Delay, it.Delay = delay, int64(delay)
	}
}

// doubt chooses what of the last round is to be cancelled and moved, at a moment when takers are about as fast.
func (p *pusher) doubt() {
	var t second
	for _, m := range p.known {
		switch r := p.dice.Float64(); {
		case r < p.Mix.Cancel:
			t.cancelled = append(t.cancelled, m)
		case r < p.Mix.Cancel+p.Mix.Move:
			t.moved = append(t.moved, m)
		}
	}
	if len(t.cancelled)+len(t.moved) > 0 {
		t.at = time.Now().Add(jitter(p.dice, p.Mix.Delay))
		p.second = append(p.second, t)
	}
}

// regret has those second thoughts whose moment has come.
func (p *pusher) regret(ctx context.Context) {
	rest := p.second[:0]
	for _, t := range p.second {
		if time.Now().Before(t.at) {
			rest = append(rest, t)
			continue
		}
		if p.q == nil {
			continue
		}
		if len(t.cancelled) > 0 && p.Traits.Supports(backend.Cancelling) {
			p.cancel(ctx, t.cancelled)
		}
		if len(t.moved) > 0 && p.Traits.Supports(backend.Rescheduling) {
			p.move(ctx, t.moved)
		}
	}
	p.second = rest
}

func (p *pusher) cancel(ctx context.Context, some []named) {
	c := Call{Op: Cancel}
	ids := make([]string, len(some))
	for i, m := range some {
		ids[i] = m.id
		c.Items = append(c.Items, Item{N: m.n})
	}
	p.call(ctx, callTime, c, func(ctx context.Context, c *Call) error { return sortOut(c, p.q.Cancel(ctx, ids)) })
}

func (p *pusher) move(ctx context.Context, some []named) {
	c := Call{Op: Move}
	moves := make([]backend.Move, len(some))
	for i, m := range some {
		delay := jitter(p.dice, p.Mix.Delay)
		moves[i] = backend.Move{ID: m.id, Delay: delay}
		c.Items = append(c.Items, Item{N: m.n, Delay: int64(delay)})
	}
	p.call(ctx, callTime, c, func(ctx context.Context, c *Call) error { return sortOut(c, p.q.Reschedule(ctx, moves)) })
}
