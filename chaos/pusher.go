package chaos

import (
	"context"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Pusher pushes a number of messages a second, cancels, reschedules or replaces some, and looks at
// these and at others.
func Pusher(e *Env, proc int, rate float64) Run {
	return func(ctx context.Context, b backend.Backend) {
		p := &pusher{client: newClient(e, proc, b), rate: rate, began: time.Now()}
		defer p.close()
		for !e.ended(ctx) {
			if p.reopen(ctx) && !p.round(ctx) {
				return
			}
		}
	}
}

type pusher struct {
	*client
	rate    float64
	began   time.Time
	pushed  int
	known   []message // of the last round
	changes []change
}

// change is a planned cancellation, rescheduling and replacement, and a look at these messages and at
// others.
type change struct {
	at                               time.Time
	cancel, reschedule, replace, get []message
}

func (c change) all() []message { return slices.Concat(c.get, c.cancel, c.reschedule, c.replace) }

// round reports false when there are no numbers left.
func (p *pusher) round(ctx context.Context) bool {
	size := pick(p.rng, p.Mix.Batches)
	first, ok := p.Numbers.take(size)
	if !ok {
		return false
	}
	c := p.push(ctx, first, size)
	p.planChanges()
	p.makeChanges(ctx)
	if p.chance(p.Mix.PushAgain*float64(size)) && p.Traits.Supports(backend.Deduplicating) {
		p.push(ctx, first+uint32(p.rng.IntN(size)), 1)
	}
	if c.Err != "" {
		p.rest(ctx, shortPause)
	}
	p.pushed += size
	if ahead := time.Duration(float64(p.pushed)/p.rate*1e9) - time.Since(p.began); ahead > 0 {
		p.rest(ctx, ahead)
	} else if ahead < -time.Second { // pushes that came too late are left out
		p.began = p.began.Add(-ahead)
	}
	return true
}

func (p *pusher) push(ctx context.Context, first uint32, size int) judge.Call {
	ms, c := make([]backend.Message, size), judge.Call{Op: judge.Push, Items: make([]judge.Item, size)}
	for i := range ms {
		n := first + uint32(i)
		ms[i], c.Items[i] = p.contentOf(n, 0), judge.Item{N: n}
		p.setDue(&ms[i], &c.Items[i])
	}
	c = p.batch(ctx, c, func(ctx context.Context) []error { return p.q.Schedule(ctx, ms) })
	p.known = p.known[:0]
	for i := range ms {
		if c.Items[i].Out == judge.OK {
			p.known = append(p.known, message{c.Items[i].N, ms[i].ID})
		}
	}
	return c
}

// planChanges chooses messages of the last round to cancel, to reschedule and to replace, at a moment
// when workers receive them too.
func (p *pusher) planChanges() {
	c := change{at: time.Now().Add(jitter(p.rng, p.Mix.Delay))}
	for _, m := range p.known {
		switch r := p.rng.Float64(); {
		case r < p.Mix.Cancel:
			c.cancel = append(c.cancel, m)
		case r < p.Mix.Cancel+p.Mix.Reschedule:
			c.reschedule = append(c.reschedule, m)
		case r < p.Mix.Cancel+p.Mix.Reschedule+p.Mix.Get:
			c.get = append(c.get, m)
		case r < p.Mix.Cancel+p.Mix.Reschedule+p.Mix.Get+p.Mix.Replace:
			c.replace = append(c.replace, m)
		}
	}
	if len(c.all()) > 0 {
		p.changes = append(p.changes, c)
	}
}

// makeChanges makes the planned changes whose time has come.
func (p *pusher) makeChanges(ctx context.Context) {
	rest := p.changes[:0]
	for _, c := range p.changes {
		if time.Now().Before(c.at) {
			rest = append(rest, c)
			continue
		}
		if p.Traits.Supports(backend.Cancelling) {
			p.onIDs(ctx, judge.Cancel, c.cancel, p.q.Cancel)
		}
		if p.Traits.Supports(backend.Rescheduling) {
			p.reschedule(ctx, c.reschedule)
		}
		if p.Traits.Supports(backend.Replacing) {
			for content := range uint32(pusherContents - 1) {
				p.replace(ctx, c.replace, content+1)
			}
		}
		if p.Traits.Supports(backend.Getting) {
			p.get(ctx, c.all())
		}
	}
	p.changes = rest
}

// get records the states in which the store shows messages.
func (p *pusher) get(ctx context.Context, ms []message) {
	if len(ms) == 0 {
		return
	}
	call := judge.Call{Op: judge.Get, Items: each(ms, func(m message) judge.Item { return judge.Item{N: m.n} })}
	p.call(ctx, callTime, call, func(ctx context.Context, call *judge.Call) error {
		shown, errs := p.q.Get(ctx, each(ms, func(m message) string { return m.id }))
		unknown := call.SetOutcomes(errs)
		for i, m := range shown {
			if it := &call.Items[i]; it.Out == judge.OK {
				n, content, whole := recognize(m.Body, m.Headers, p.Traits)
				it.State, it.Content, it.Altered = m.State, content, !whole || n != it.N || m.ID != ms[i].id
			}
		}
		return unknown
	})
}

func (p *pusher) reschedule(ctx context.Context, ms []message) {
	c := judge.Call{Op: judge.Reschedule}
	moves := make([]backend.Move, len(ms))
	for i, m := range ms {
		delay := jitter(p.rng, p.Mix.Delay)
		moves[i] = backend.Move{ID: m.id, Delay: delay}
		c.Items = append(c.Items, judge.Item{N: m.n, Delay: int64(delay)})
	}
	p.batch(ctx, c, func(ctx context.Context) []error { return p.q.Reschedule(ctx, moves) })
}

// replace pushes messages with another content, in place of those that wait; every other content in
// place of those in flight too.
func (p *pusher) replace(ctx context.Context, known []message, content uint32) {
	var r replacement
	for _, m := range known {
		r.add(p.client, m.n, content, p.Traits.Supports(backend.ReplacingInFlight) && content%2 == 1)
	}
	r.push(ctx, p.client)
}
