package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// placement is how a message came into its queue, for one that was certainly pushed once and whose
// due time no call changed since.
type placement struct {
	push  *Call
	at    int  // its index in the push
	first step // the first delivery
	known bool // first is attempt 1, so that no worker can have had the message before
}

// placement returns nil for a message of which it is not known.
func (m *message) placement() *placement {
	var p *placement
	for _, s := range m.steps {
		switch {
		case s.Op == Push && s.Out == OK && p == nil:
			p = &placement{push: s.Call, at: slices.IndexFunc(s.Items, func(it Item) bool { return it.N == m.n })}
		case s.Op == Push && s.Out.may(), s.Out.may() && (s.Op == Cancel || s.Op == Reschedule || s.Op == Redrive), s.Out.may() && s.Op == Nack && !s.Untouched:
			return nil
		}
	}
	if p == nil {
		return nil
	}
	for _, s := range m.steps { // a Receive may begin before the push does
		if s.Op == Receive && (p.first.Call == nil || s.claim() < p.first.claim()) {
			p.first, p.known = s, s.Attempt == 1
		}
	}
	return p
}

// placements returns those of messages by number; nil where they are not known.
func placements(ms []message) []*placement {
	if len(ms) == 0 {
		return nil
	}
	all := make([]*placement, ms[len(ms)-1].n+1)
	for i := range ms {
		all[ms[i].n] = ms[i].placement()
	}
	return all
}

// before reports whether p was certainly in the store before q, or in front of it in one push.
func (p *placement) before(q *placement) bool {
	if p.push == q.push {
		return p.at < q.at
	}
	return p.push.end() < q.push.Start
}

// order holds in two places, also with many workers and under faults.
//
// In one batch messages are sorted by due time, and those of one due time by push, where it is known
// which came first: a claim takes the front of the queue at one moment.
//
// The second queue has one worker, which takes one message at a time. When it claimed b, every
// message was there that had been pushed by then and came later as attempt 1. Of these none may be
// due before b, or at the same time and pushed before b.
//
// Neither says anything of messages whose due time a call changed, nor of times in which the clock
// jumped or the store forgot.
func (c *checker) order() {
	if !c.h.Traits.Supports(backend.Ordering) {
		return
	}
	var alone []step
	for i := range c.h.Calls {
		call := &c.h.Calls[i]
		if call.Op != Receive {
			continue
		}
		c.sorted(call)
		if call.Second && len(call.Items) > 0 {
			alone = append(alone, step{call, &call.Items[0]})
		}
	}
	c.inTurn(alone)
}

// sorted checks one batch.
func (c *checker) sorted(call *Call) {
	for i := 1; i < len(call.Items); i++ {
		a, b := &call.Items[i-1], &call.Items[i]
		p, q := c.places[a.N], c.places[b.N]
		c.counts.Ordered++
		switch {
		case a.Due > b.Due:
			c.failOn(b.N, "order", "was due at %s and was handed out after message %d in one batch, which was due at %s", clockOf(b.Due), a.N, clockOf(a.Due))
		case a.Due == b.Due && p != nil && q != nil && q.before(p):
			c.failOn(b.N, "order", "was pushed before message %d, due at the same time, and was handed out after it in one batch", a.N)
		}
	}
}

// inTurn checks the deliveries to one worker.
func (c *checker) inTurn(all []step) {
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.Start, b.Start) })
	if slices.ContainsFunc(all, func(s step) bool { return s.Proc != all[0].Proc }) {
		return
	}
	for i, b := range all {
		if len(b.Items) > 1 {
			c.failOn(b.N, "order", "was handed out with %d others at once, to a worker that asked for one", len(b.Items)-1)
		}
		for _, a := range all[i+1:] {
			if p := c.places[a.N]; p != nil && p.known && p.first.Call == a.Call {
				c.overtaken(p, a, b, c.places[b.N])
			}
		}
	}
}

// overtaken checks that b, which was handed out before a, did not belong after it.
func (c *checker) overtaken(p *placement, a, b step, q *placement) {
	claimed := c.h.firstShown(b.earliestClaim(), b.claim()) - int64(max(c.h.Traits.Resolution, time.Millisecond)) // to which it is rounded up
	from := min(p.push.Start, b.Start)
	if p.push.end() >= claimed || c.h.jumped(from, a.end()) || c.h.forgot(from, a.end()) {
		return
	}
	c.counts.Ordered++
	switch {
	case a.Due < b.Due:
		c.failOn(a.N, "order", "was due at %s, and message %d, due at %s, was handed out before it", clockOf(a.Due), b.N, clockOf(b.Due))
	case a.Due == b.Due && q != nil && p.before(q):
		c.failOn(a.N, "order", "was pushed before message %d, due at the same time, and was handed out after it", b.N)
	}
}
