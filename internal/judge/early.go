package judge

import (
	"slices"
	"time"
)

// early: no delivery before the due time, by the store's clock. The least due time follows from what
// was pushed, rescheduled and given back, not from what the store says of itself.
func (c *checker) early(m *message) {
	for _, d := range m.deliveries() {
		least, from := c.leastDue(m, d)
		late := d.high - least
		switch {
		case from.Call == nil: // nobody pushed it: the rule unexpected
		case d.Due != 0 && d.Due < least:
			c.fail("early", "has the due time %s, and must not be due before %s, by the %v at %s", clockOf(d.Due), clockOf(least), from.Op, clockOf(from.Start))
		case d.Due != 0 && d.claim() < d.Due:
			c.fail("early", "was due at %s and was claimed at %s, %v early", clockOf(d.Due), clockOf(d.claim()), time.Duration(d.Due-d.claim()))
		case late < 0:
			c.fail("early", "came %v early: it was due at %s and came at %s", time.Duration(-late), clockOf(least), clockOf(d.high))
		case len(c.h.ClockJumps) > 0 && !d.inClocks:
			c.fail("early", "was claimed at %s, which the store's clock did not show while it may have been", clockOf(d.claim()))
		case d.Attempt == 1 && late < never/2 && !c.h.jumped(min(from.Start, d.earliestClaim()), d.end()):
			c.counts.LatestDelivery = max(c.counts.LatestDelivery, d.high-max(least, from.high)) // a due time may be past when it is set
		}
	}
}

// leastDue is the earliest due time that a delivery may have had, and the call that set it.
func (c *checker) leastDue(m *message, d *delivery) (least int64, from step) {
	copied := c.copied(m, d.end())
	for _, s := range m.steps {
		due, sets := m.setsDue(s)
		if !sets || s.Start > d.end() || !copied && m.superseded(s, d) { // a copy keeps its own due time
			continue
		}
		if from.Call == nil || due < least {
			least, from = due, s
		}
	}
	return least, from
}

// superseded reports whether another call certainly set the due time after s and before the delivery
// was claimed, which may be long before the Receive that returned it. A push with Replace whose outcome
// is unknown may take place later than it returned, as the rule replaced has it; no other call may.
func (m *message) superseded(s step, d *delivery) bool {
	if s.Op == Push && s.Replace && s.Out == Unknown {
		return false
	}
	for _, later := range m.steps {
		if _, sets := m.setsDue(later); sets && later.Out == OK && later.Start > s.end() && later.end() < d.claimedSince(m) && !m.ignored(later, s) {
			return true
		}
	}
	return false
}

// ignored reports whether a nack may have been of a message that the push had replaced in flight: the
// due time is that of the push then.
func (m *message) ignored(nack, push step) bool {
	return nack.Op == Nack && push.AfterInFlight && slices.ContainsFunc(m.deliveries(), func(d *delivery) bool {
		return d.Token == nack.Token && d.start(m) <= push.end()
	})
}

// setsDue returns the least due time that a call gives a message, if it gives it any.
func (m *message) setsDue(s step) (due int64, sets bool) {
	switch {
	case !s.Out.may():
		return 0, false
	case (s.Op == Push || s.Op == Reschedule) && s.Due != 0:
		return s.Due, true
	case s.Op == Push, s.Op == Reschedule, s.Op == Nack && !s.Untouched:
		return after(m.least(s), s.Delay), true
	case s.Op == Redrive:
		return after(m.least(s), 0), true
	default:
		return 0, false
	}
}

// after is when a delay has passed. A message that is due at once is due in the current millisecond.
func after(now, delay int64) int64 {
	if delay == 0 {
		return now - now%int64(time.Millisecond)
	}
	return saturate(now, delay)
}
