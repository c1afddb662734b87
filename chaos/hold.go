package chaos

import (
	"cmp"
	"slices"
)

// hold is one hand-out and what its holder did with it.
type hold struct {
	step
	uses []step // by its token: acks, nacks, burials, extensions

	at    int64 // when the store made it, by the machine's clock
	since int64 // the same, or before where that is not clear
	vague bool  // when it was among others is not known: the store's clock showed the time twice, or was just jumping
	shown bool  // the store's clock showed the claim's time at all

	ends  int64 // since when the lease may have ended by itself, by the machine's clock
	free  int64 // the same, or by what its holder did
	until int64 // when it ended at latest, at least in its holder's eyes; by the store's clock

	settled step // what ended it, where that may have succeeded; else its Call is nil
}

// holds are the hand-outs of a message in the order in which the store made them.
func (l *life) holds() []hold {
	if l.hs != nil {
		return l.hs
	}
	var hs []hold
	for _, s := range l.steps {
		if s.Op == Take {
			hs = append(hs, hold{step: s})
		}
	}
	for i := range hs {
		hs[i].follow(l)
	}
	// Of two in one millisecond, the one that was free first came first.
	slices.SortStableFunc(hs, func(a, b hold) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.free, b.free)) })
	l.hs = hs
	return hs
}

func (s step) settles() bool { return s.Op == Ack || s.Op == Nack || s.Op == Bury }

func (h *hold) owns(s step) bool {
	return s.Token == h.Token && s.Proc == h.Proc && s.Handle == h.Handle && (s.settles() || s.Op == Extend)
}

// begin works out when the store made the hand-out.
func (h *hold) begin(l *life) {
	for s := range l.h.spells(h.end(), h.end()) {
		h.at = h.claim() - s.shift
	}
	h.since = h.at - grain
	if some := l.h.moments(h.claim(), h.Call); len(some) > 0 {
		h.at, h.since, h.shown = some[len(some)-1], some[0]-grain, true
		h.vague = len(some) > 1 || l.h.jumped(h.at-grain, h.at)
	}
}

// begun is since when the message may have been handed out. A claim on its way from before the clock jumped may have no
// lease any more when it arrives, and nobody can tell by how long it took.
func (h *hold) begun(l *life) int64 {
	if l.h.jumped(h.since, h.Start) {
		return min(h.since, h.Start)
	}
	return h.Start
}

// follow works out how long the lease was.
func (h *hold) follow(l *life) {
	h.begin(l)
	h.ends, h.until = l.h.shown(h.since, h.Until), h.Until
	for _, s := range l.steps {
		if !h.owns(s) {
			continue
		}
		h.uses = append(h.uses, s)
		switch {
		case s.Op == Extend && s.Out == OK:
			h.ends, h.until = l.h.shown(s.Start, s.Until), s.Until
		case s.Op == Extend && s.Out == Unknown:
			h.ends = min(h.ends, l.h.shown(s.Start, l.least(s)+s.Lease))
			h.until = max(h.until, saturate(l.most(s), s.Lease+grain))
		case s.Out.may() && h.settled.Call == nil:
			h.settled = s
		}
	}
	h.free = h.ends
	if h.settled.Call != nil {
		h.free = min(h.free, h.settled.Start)
	}
}

func saturate(a, b int64) int64 {
	if a > never-b {
		return never
	}
	return a + b
}
