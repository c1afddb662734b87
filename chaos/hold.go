package chaos

import (
	"cmp"
	"slices"
)

// hold is one hand-out and what its holder did with it.
type hold struct {
	step
	uses []step // by its token: acks, nacks, burials, extensions

	// The lease ended at soonest at free, and at least in its holder's eyes at latest at until. By the store's clock.
	free, until int64

	settled step // what ended it, where that may have succeeded; else its Call is nil
}

// holds are the hand-outs of a message in the order in which the store made them.
func (l *life) holds() []hold {
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
	slices.SortStableFunc(hs, func(a, b hold) int { return cmp.Or(cmp.Compare(a.claim(), b.claim()), cmp.Compare(a.free, b.free)) })
	return hs
}

func (s step) settles() bool { return s.Op == Ack || s.Op == Nack || s.Op == Bury }

func (h *hold) owns(s step) bool {
	return s.Token == h.Token && s.Proc == h.Proc && s.Handle == h.Handle && (s.settles() || s.Op == Extend)
}

// follow works out how long the lease was.
func (h *hold) follow(l *life) {
	h.free, h.until = h.Until, h.Until
	for _, s := range l.steps {
		if !h.owns(s) {
			continue
		}
		h.uses = append(h.uses, s)
		switch {
		case s.Op == Extend && s.Out == OK:
			h.free, h.until = s.Until, s.Until
		case s.Op == Extend && s.Out == Unknown:
			h.free = min(h.free, s.storeStart()+s.Lease)
			h.until = max(h.until, saturate(s.storeEnd(), s.Lease+1e6))
		case s.Out.may() && h.settled.Call == nil:
			h.settled = s
		}
	}
	if h.settled.Call != nil {
		h.free = min(h.free, h.settled.storeStart())
	}
}

func saturate(a, b int64) int64 {
	if a > never-b {
		return never
	}
	return a + b
}
