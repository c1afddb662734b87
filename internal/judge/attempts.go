package judge

import "github.com/delayq/delayq/backend"

// attempts: Attempt is 1 at first, and one more with each delivery, but not for a message that was
// given back untouched. A delivery that no worker saw counts too. That happens only where something
// broke, or where the machine kept a process from its delivery until the lease had ended: the latter
// takes a lease's time, and is rare.
func (c *checker) attempts(m *message) {
	if !c.h.Traits.Supports(backend.CountingAttempts) || len(m.only(Push)) > 1 {
		return
	}
	ds := m.deliveries()
	for i, b := range ds {
		if i == 0 {
			pushed := m.steps[0].Start
			c.checkAttempt(m, pushed, c.h.firstShown(pushed, b.Due), 1, 1, b)
			continue
		}
		a := ds[i-1]
		if a.vague || b.vague {
			continue // which came first is unknown
		}
		most := a.Attempt + 1
		if s := a.settled; s.untouched() && s.Out == OK {
			most--
		}
		c.checkAttempt(m, a.Start, a.free, c.leastAttempt(m, ds[:i], b), most, b)
	}
}

func (s step) untouched() bool { return s.Call != nil && s.Op == Nack && s.Untouched }

// leastAttempt is the least attempt of a delivery after others. Those that the store may have undone
// need not have counted.
func (c *checker) leastAttempt(m *message, before []*delivery, next *delivery) int {
	for len(before) > 0 && c.h.undone(before[len(before)-1].step) {
		before = before[:len(before)-1]
	}
	if len(before) == 0 {
		return 1
	}
	switch last := before[len(before)-1]; {
	case redriven(m, last, next):
		return 1
	case last.settled.untouched():
		return last.Attempt
	default:
		return last.Attempt + 1
	}
}

// checkAttempt checks one delivery. free is since when, by the machine's clock, it was possible.
func (c *checker) checkAttempt(m *message, since, free int64, least, most int, d *delivery) {
	switch {
	case c.h.undone(d.step), c.h.jumped(min(since, d.Start), max(since, d.end())): // a jump ended leases, perhaps of claims on their way
	case c.copied(m, d.end()): // a copy has a count of its own
	case d.Attempt < least:
		c.fail("attempts", "came as attempt %d at %s, where %d was the least", d.Attempt, clockOf(d.End), least)
	case d.Attempt <= most:
	case !c.h.Traits.Supports(backend.ExactAttempts) && c.h.broke(m.steps[0].Start, d.end()): // an earlier break may show late
	case c.h.broke(since, d.end()):
		c.counts.Unseen += d.Attempt - most
	case d.at-free >= c.shortest:
		c.counts.Unseen += d.Attempt - most
		c.stalled[d.Call] = true
	default:
		c.fail("attempts", "came as attempt %d at %s, and no worker saw attempt %d", d.Attempt, clockOf(d.End), most)
	}
}

// stalledOf bounds the calls that returned attempts after one that no worker saw, though nothing
// broke: one in so many. A process that stands still misses a whole claim, which may be hundreds of
// messages.
const stalledOf = 50

func (c *checker) unseen() {
	if n := len(c.stalled); n > max(c.counts.Calls/stalledOf, 10) {
		c.fail("attempts", "in %d of %d calls came messages after an attempt that no worker saw, and nothing broke", n, c.counts.Calls)
	}
}
