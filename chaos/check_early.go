package chaos

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// early is invariant 1: no hand-out before its due time by the store's clock. What due time that is at least follows from
// what was pushed, moved and given back, not from what the store says of itself.
func (j *judge) early(l *life) {
	for _, h := range l.holds() {
		s := h.step
		least, from := j.leastDue(l, s)
		late := s.high - least
		switch {
		case from.Call == nil: // nobody pushed it, which is another rule's
		case s.Due < least:
			j.fail("early", "has the due time %s, and must not be due before %s, by the %v at %s", clockOf(s.Due), clockOf(least), from.Op, clockOf(from.Start))
		case s.claim() < s.Due:
			j.fail("early", "was due at %s and was claimed at %s, %v early", clockOf(s.Due), clockOf(s.claim()), time.Duration(s.Due-s.claim()))
		case late < 0:
			j.fail("early", "was not due before %s and arrived at %s", clockOf(least), clockOf(s.high))
		case len(j.h.Leaps) > 0 && !h.shown:
			j.fail("early", "was claimed at %s, which the store's clock did not show while it may have been", clockOf(s.claim()))
		case s.Attempt == 1 && late < never/2 && !j.h.jumped(min(from.Start, s.claimed()), s.end()):
			j.counts.Latest = max(j.counts.Latest, s.high-max(least, from.high)) // a due time may have been over when it was set
		}
	}
}

// leastDue is the earliest due time that a hand-out may have had, and what set it.
func (j *judge) leastDue(l *life, take step) (least int64, from step) {
	copied := !j.h.Traits.Supports(backend.SingleCopy) && (l.unclear() || j.h.broke(l.steps[0].Start, take.end()))
	for _, s := range l.steps {
		due, sets := l.setsDue(s)
		if !sets || s.Start > take.end() || !copied && l.superseded(s, take) { // a copy keeps its own due time
			continue
		}
		if from.Call == nil || due < least {
			least, from = due, s
		}
	}
	return least, from
}

// superseded reports whether another call has certainly set the due time anew after s and before the hand-out.
func (l *life) superseded(s, take step) bool {
	for _, later := range l.steps {
		if _, sets := l.setsDue(later); sets && later.Out == OK && later.Start > s.end() && later.end() < take.Start {
			return true
		}
	}
	return false
}

// setsDue returns the least due time that a call gives a message, if it gives it any.
func (l *life) setsDue(s step) (due int64, sets bool) {
	switch {
	case !s.Out.may():
		return 0, false
	case s.Op == Push && s.Due != 0:
		return s.Due, true
	case s.Op == Push, s.Op == Move, s.Op == Nack && !s.Untouched:
		return after(l.least(s), s.Delay), true
	case s.Op == Redrive:
		return after(l.least(s), 0), true
	default:
		return 0, false
	}
}

// after is when so much time has passed. What is due at once is due in the millisecond that runs.
func after(now, delay int64) int64 {
	if delay == 0 {
		return now - now%int64(time.Millisecond)
	}
	return now + delay
}
