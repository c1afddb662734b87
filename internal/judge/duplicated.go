package judge

import (
	"slices"

	"github.com/delayq/delayq/backend"
)

// duplicated: a message is never handed out after a successful ack, cancellation or deletion. An id
// that was pushed twice is left to the rule linearizable.
func (c *checker) duplicated(m *message) {
	ds := m.deliveries()
	for i := 1; i < len(ds); i++ {
		c.counts.Redelivered++
		c.countCause(m, ds[i-1], ds[i])
	}
	if len(m.only(Push)) > 1 {
		return
	}
	for _, s := range m.steps {
		if s.Out != OK || s.Op != Ack && s.Op != Cancel && s.Op != DeleteDead {
			continue
		}
		for _, d := range ds {
			if d.start(m) > s.End && !c.maybeCopy(m, d) {
				c.fail("duplicated", "came at %s though its %v had succeeded at %s", clockOf(d.End), s.Op, clockOf(s.End))
			}
		}
	}
}

// countCause counts why a message was handed out again.
func (c *checker) countCause(m *message, a, b *delivery) {
	switch {
	case redriven(m, a, b):
		c.counts.Redriven++
	case a.settled.Call != nil && a.settled.Op == Nack:
		c.counts.Nacks++
	case c.h.latest(a.since, b.at) >= a.until:
		c.counts.Expiries++
	default:
		c.counts.Breaks++
	}
}

func redriven(m *message, a, b *delivery) bool {
	return slices.ContainsFunc(m.only(Redrive), func(s step) bool { return s.end() >= a.Start && s.Start <= b.end() })
}

// copied reports whether the store may hold two copies of the message by then: it lacks SingleCopy,
// and a break may have come between the writing of a copy and the deletion of the first.
func (c *checker) copied(m *message, until int64) bool {
	if c.h.Traits.Supports(backend.SingleCopy) {
		return false
	}
	return c.h.broke(m.steps[0].Start, until) || slices.ContainsFunc(m.only(Nack, Dead, Redrive), func(s step) bool { return s.Out == Unknown })
}

// maybeCopy is copied for a delivery, and counts it unless the store sent the message again.
func (c *checker) maybeCopy(m *message, d *delivery) bool {
	is := c.copied(m, d.end())
	resent := func(w Window) bool { return w.Resends && w.during(m.steps[0].Start, d.end()) }
	if is && !slices.ContainsFunc(c.h.Windows, resent) {
		c.counts.Copies++
	}
	return is
}

// copiesOf bounds the copies of a store that lacks SingleCopy, except for those that it sent again:
// one in so many messages.
const copiesOf = 50

func (c *checker) copies() {
	if n := c.counts; n.Copies > max(n.Messages/copiesOf, 5) {
		c.fail("duplicated", "%d messages came again after they were settled, of %d: breaks explain fewer", n.Copies, n.Messages)
	}
}
