package chaos

import "github.com/delayq/delayq/backend"

// again is invariant 4: a message comes again only after a lease that ended, a nack or a redrive, and never after a successful ack or
// cancellation. Ids that were pushed twice are left to the rule linear.
func (j *judge) again(l *life) {
	hs := l.holds()
	for i := 1; i < len(hs); i++ {
		j.counts.Again++
		j.cause(l, hs[i-1], hs[i])
	}
	if l.pushes() > 1 {
		return
	}
	for _, s := range l.steps {
		if s.Out != OK || s.Op != Ack && s.Op != Cancel && s.Op != Delete {
			continue
		}
		for _, h := range hs {
			if h.begun(l) > s.End && !j.copiable(l, h) {
				j.fail("again", "came at %s though its %v had succeeded at %s", clockOf(h.End), s.Op, clockOf(s.End))
			}
		}
	}
}

// cause counts why a message came again.
func (j *judge) cause(l *life, a, b hold) {
	switch {
	case redriven(l, a, b):
		j.counts.Redriven++
	case a.settled.Call != nil && a.settled.Op == Nack:
		j.counts.Nacks++
	case j.h.latest(a.since, b.at) >= a.until:
		j.counts.Expiries++
	default:
		j.counts.Breaks++
	}
}

func redriven(l *life, a, b hold) bool {
	for _, s := range l.only(Redrive) {
		if s.end() >= a.Start && s.Start <= b.end() {
			return true
		}
	}
	return false
}

// copiable reports whether the store has declared that this may be a second copy of the message: one that was left by
// a break between the writing of a copy and the deletion of the first.
func (j *judge) copiable(l *life, h hold) bool {
	if j.h.Traits.Supports(backend.SingleCopy) || !l.unclear() && !j.h.broke(l.steps[0].Start, h.end()) {
		return false
	}
	j.counts.Copies++
	return true
}

// unclear reports whether something that copies a message was broken off.
func (l *life) unclear() bool {
	for _, s := range l.steps {
		if s.Out == Unknown && (s.Op == Nack || s.Op == Bury || s.Op == Redrive) {
			return true
		}
	}
	return false
}

// copiesOf bounds the copies that a store may leave which copies messages: one in so many messages.
const copiesOf = 50

func (j *judge) copied() {
	if c := j.counts; c.Copies > max(c.Messages/copiesOf, 5) {
		j.fail("again", "%d messages came again after they were done, of %d: that is more than what breaks leave twice", c.Copies, c.Messages)
	}
}
