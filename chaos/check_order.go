package chaos

import (
	"cmp"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// placed is how a message came into its queue, of one that was pushed once, for sure, and whose due time nothing has changed since.
type placed struct {
	push   *Call
	at     int // its place in the push
	first  step
	handed bool // first is its first hand-out, and nobody can have had the message before
}

// place is nil for a message of which that is not known.
func (l *life) place() *placed {
	var p *placed
	for _, s := range l.steps {
		switch {
		case s.Op == Push && s.Out == OK && p == nil:
			p = &placed{push: s.Call, at: slices.IndexFunc(s.Items, func(it Item) bool { return it.N == l.n })}
		case s.Op == Push && s.Out.may(), s.Out.may() && (s.Op == Cancel || s.Op == Move || s.Op == Redrive), s.Out.may() && s.Op == Nack && !s.Untouched:
			return nil
		}
	}
	if p != nil {
		p.taken(l)
	}
	return p
}

// taken looks for the first hand-out. Its call may have begun before the push did.
func (p *placed) taken(l *life) {
	for _, s := range l.steps {
		if s.Op == Take && (p.first.Call == nil || s.claim() < p.first.claim()) {
			p.first, p.handed = s, s.Attempt == 1
		}
	}
}

// placesOf has the places of messages by number, where they are known.
func placesOf(ls []life) []*placed {
	if len(ls) == 0 {
		return nil
	}
	all := make([]*placed, ls[len(ls)-1].n+1)
	for i := range ls {
		all[ls[i].n] = ls[i].place()
	}
	return all
}

// before reports whether p was in the store before q for sure, or in front of it in one push.
func (p *placed) before(q *placed) bool {
	if p.push == q.push {
		return p.at < q.at
	}
	return p.push.end() < q.push.Start
}

// order is invariant 7, as far as it holds among many takers and under faults.
//
// In one hand-out messages are sorted by due time, and those of one due time by push, where it is known which came first: a claim takes the
// front of the queue at one moment.
//
// The queue beside has one taker, which takes one message at a time. When b was claimed there, everything was there that had been pushed by then and came
// later as attempt 1: it had never been handed out, not even unseen, but for what that taker's own handle had claimed for it too late and gives back before it
// claims again. Of these none may be due before b, or at the same time and pushed before b.
//
// Neither says anything of messages whose due time something has changed, nor of times in which the clock jumped or the store forgot.
func (j *judge) order(places []*placed) {
	if !j.h.Traits.Supports(backend.Ordering) {
		return
	}
	var alone []step
	for i := range j.h.Calls {
		c := &j.h.Calls[i]
		if c.Op != Take {
			continue
		}
		j.sorted(c, places)
		if c.Aside && len(c.Items) > 0 {
			alone = append(alone, step{c, &c.Items[0]})
		}
	}
	j.inTurn(alone, places)
}

// sorted checks one hand-out.
func (j *judge) sorted(c *Call, places []*placed) {
	for i := 1; i < len(c.Items); i++ {
		a, b := &c.Items[i-1], &c.Items[i]
		p, q := places[a.N], places[b.N]
		j.counts.Ordered++
		switch {
		case a.Due > b.Due:
			j.failOn(b.N, "order", "was due at %s and was handed out behind message %d in one batch, which was due at %s", clockOf(b.Due), a.N, clockOf(a.Due))
		case a.Due == b.Due && p != nil && q != nil && q.before(p):
			j.failOn(b.N, "order", "was pushed before message %d, due at the same time, and was handed out behind it in one batch", a.N)
		}
	}
}

// inTurn checks the hand-outs to one taker.
func (j *judge) inTurn(takes []step, places []*placed) {
	slices.SortStableFunc(takes, func(a, b step) int { return cmp.Compare(a.Start, b.Start) })
	if slices.ContainsFunc(takes, func(s step) bool { return s.Proc != takes[0].Proc }) {
		return
	}
	for i, b := range takes {
		if len(b.Items) > 1 {
			j.failOn(b.N, "order", "was handed out with %d others at once, to a taker that asked for one", len(b.Items)-1)
		}
		for _, a := range takes[i+1:] {
			if p := places[a.N]; p != nil && p.handed && p.first.Call == a.Call {
				j.overtaken(p, a, b, places[b.N])
			}
		}
	}
}

// claimedAt is when a hand-out was made at soonest, by the machine's clock.
func (j *judge) claimedAt(s step) int64 { return j.h.shown(s.claimed(), s.claim()) }

// overtaken checks that b, which was handed out before a, was not behind it.
func (j *judge) overtaken(p *placed, a, b step, q *placed) {
	rounded := int64(max(j.h.Traits.Resolution, time.Millisecond)) // the claim is
	from := min(p.push.Start, b.Start)
	if p.push.end() >= j.claimedAt(b)-rounded || j.h.jumped(from, a.end()) || j.h.forgot(from, a.end()) {
		return
	}
	j.counts.Ordered++
	switch {
	case a.Due < b.Due:
		j.failOn(a.N, "order", "was due at %s, and message %d, due at %s, was handed out before it", clockOf(a.Due), b.N, clockOf(b.Due))
	case a.Due == b.Due && q != nil && p.before(q):
		j.failOn(a.N, "order", "was pushed before message %d, due at the same time, and was handed out after it", b.N)
	}
}
