package judge

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// lease: the leases of a message do not overlap, each is settled once, and a call after its end is
// refused.
func (c *checker) lease(m *message) {
	ds := m.deliveries()
	for i, d := range ds {
		c.settledOnce(d)
		c.fenced(m, d)
		if i+1 < len(ds) {
			c.exclusive(m, d, ds[i+1])
		}
	}
}

func (c *checker) exclusive(m *message, a, b *delivery) {
	switch {
	case b.at >= a.free:
	case a.vague, b.vague, c.h.undone(a.step), c.endedWithConnection(a, b):
	case c.maybeCopy(m, b):
	default:
		c.fail("lease", "was handed to process %d at %s, %v before the lease of process %d ended", b.Proc, clockOf(b.at), time.Duration(a.free-b.at), a.Proc)
	}
}

// endedWithConnection reports whether the lease was one of a connection that broke or was closed.
func (c *checker) endedWithConnection(a, b *delivery) bool {
	if c.h.Traits.Leases != backend.InConnection {
		return false
	}
	closed, was := c.closes[handle{a.Proc, a.Handle}]
	return was && closed <= b.end() || c.h.broke(a.Start, b.end())
}

func (c *checker) settledOnce(d *delivery) {
	var first *step
	for i := range d.uses {
		s := &d.uses[i]
		if s.Out != OK {
			continue
		}
		if first != nil && s.Start > first.end() {
			c.fail("lease", "accepted the %v at %s of a lease that had been settled by the %v at %s", s.Op, clockOf(s.Start), first.Op, clockOf(first.Start))
		}
		if s.settles() && first == nil {
			first = s
		}
	}
}

// fenced checks that a call under an ended lease is refused, and one under a lease in force is not.
func (c *checker) fenced(m *message, d *delivery) {
	until := d.Until
	for i := range d.uses {
		s := &d.uses[i]
		switch {
		case s.Out == OK && s.low >= until:
			c.fail("lease", "accepted the %v at %s of a lease that had ended at %s", s.Op, clockOf(s.low), clockOf(until))
		case s.Out == LeaseLost && c.inForce(m, d, s, until):
			c.fail("lease", "refused the %v at %s of a lease in force until %s", s.Op, clockOf(s.Start), clockOf(until))
		}
		switch {
		case s.Op == Extend && s.Out == OK:
			until = s.Until
		case s.Op == Extend && s.Out == Unknown:
			until = max(until, saturate(m.most(*s), s.Lease+grain))
		}
	}
}

// inForce reports whether a lease was certainly in force for all the time that a call took.
func (c *checker) inForce(m *message, d *delivery, s *step, until int64) bool {
	if c.h.latest(d.since, s.end()) >= min(until, d.earliestEnd(m, s)) || c.h.undone(d.step) {
		return false
	}
	return c.h.Traits.Leases != backend.InConnection || !c.h.broke(d.Start, s.end())
}

// earliestEnd is when the lease may have ended by what was done before s.
func (d *delivery) earliestEnd(m *message, s *step) int64 {
	end := d.Until
	for i := range d.uses {
		u := &d.uses[i]
		switch {
		case u.Call == s.Call:
		case u.settles() && u.Out.may() && u.Start <= s.end():
			return 0
		case u.Op == Extend && u.Out == OK && u.end() <= s.Start:
			end = u.Until
		case u.Op == Extend && u.Out.may():
			end = min(end, saturate(m.least(*u), u.Lease))
		}
	}
	return end
}
