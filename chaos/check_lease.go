package chaos

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// lease is invariant 5: the times in which a message is held do not overlap, a lease is settled once, and what comes after its end
// is refused.
func (j *judge) lease(l *life) {
	hs := l.holds()
	for i := range hs {
		j.settledOnce(&hs[i])
		j.fenced(l, &hs[i])
		if i+1 < len(hs) {
			j.excludes(l, &hs[i], &hs[i+1])
		}
	}
}

func (j *judge) excludes(l *life, a, b *hold) {
	switch {
	case b.at >= a.free:
	case a.vague, b.vague, j.h.undone(a.step), j.endedWithConnection(a, b):
	case !j.h.Traits.Supports(backend.SingleCopy) && (l.unclear() || j.h.broke(l.steps[0].Start, b.end())):
		j.counts.Copies++
	default:
		j.fail("lease", "was handed to process %d at %s, %v before the lease of process %d ended", b.Proc, clockOf(b.at), time.Duration(a.free-b.at), a.Proc)
	}
}

// endedWithConnection reports whether the lease was one of a connection that broke or was closed.
func (j *judge) endedWithConnection(a, b *hold) bool {
	if j.h.Traits.Leases != backend.InConnection {
		return false
	}
	closed, was := j.closes[handle{a.Proc, a.Handle}]
	return was && closed <= b.end() || j.h.broke(a.Start, b.end())
}

func (j *judge) settledOnce(h *hold) {
	var first *step
	for i := range h.uses {
		s := &h.uses[i]
		if s.Out != OK {
			continue
		}
		if first != nil && s.Start > first.end() {
			j.fail("lease", "took the %v at %s of a lease that had been settled by the %v at %s", s.Op, clockOf(s.Start), first.Op, clockOf(first.Start))
		}
		if s.settles() && first == nil {
			first = s
		}
	}
}

// fenced checks that what is done under an ended lease is refused, and what is done under one in force is not.
func (j *judge) fenced(l *life, h *hold) {
	until := h.Until
	for i := range h.uses {
		s := &h.uses[i]
		switch {
		case s.Out == OK && s.low >= until:
			j.fail("lease", "took the %v at %s of a lease that had ended at %s", s.Op, clockOf(s.low), clockOf(until))
		case s.Out == LeaseLost && j.inForce(l, h, s, until):
			j.fail("lease", "refused the %v at %s of a lease in force until %s", s.Op, clockOf(s.Start), clockOf(until))
		}
		switch {
		case s.Op == Extend && s.Out == OK:
			until = s.Until
		case s.Op == Extend && s.Out == Unknown:
			until = max(until, saturate(l.most(*s), s.Lease+grain))
		}
	}
}

// inForce reports whether a lease was in force for sure all the time that a call took.
func (j *judge) inForce(l *life, h *hold, s *step, until int64) bool {
	if j.h.latest(h.since, s.end()) >= min(until, h.freeBefore(l, s)) || j.h.undone(h.step) {
		return false
	}
	return j.h.Traits.Leases != backend.InConnection || !j.h.broke(h.Start, s.end())
}

// freeBefore is when the lease may have ended by what was done before s.
func (h *hold) freeBefore(l *life, s *step) int64 {
	free := h.Until
	for i := range h.uses {
		u := &h.uses[i]
		switch {
		case u.Call == s.Call:
		case u.settles() && u.Out.may() && u.Start <= s.end():
			return 0
		case u.Op == Extend && u.Out == OK && u.end() <= s.Start:
			free = u.Until
		case u.Op == Extend && u.Out.may():
			free = min(free, l.least(*u)+u.Lease)
		}
	}
	return free
}
