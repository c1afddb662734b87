package chaos

import "github.com/delayq/delayq/backend"

// attempts is invariant 8: Attempt is 1 at first, and one more with each hand-out, but for those that were given back untouched. A
// hand-out that nobody saw counts too. There is none unless something broke, or the machine kept a process from its delivery until
// the lease had ended: that takes a lease's time, and is rare.
func (j *judge) attempts(l *life) {
	if !j.h.Traits.Supports(backend.CountingAttempts) || l.pushes() > 1 {
		return
	}
	hs := l.holds()
	for i := range hs {
		if i == 0 {
			pushed := l.steps[0].Start
			j.counted(l, pushed, j.h.shown(pushed, hs[0].Due), 1, 1, &hs[0])
			continue
		}
		a, b := &hs[i-1], &hs[i]
		if a.vague || b.vague {
			continue // nobody knows which came first
		}
		least, most := j.leastAfter(l, hs[:i], b), a.Attempt+1
		if s := a.settled; s.untouched() && s.Out == OK {
			most--
		}
		j.counted(l, a.Start, a.free, least, most, b)
	}
}

func (s step) untouched() bool { return s.Call != nil && s.Op == Nack && s.Untouched }

// leastAfter is the least attempt that a hand-out may be, after others. Those that the store may have undone need not have counted.
func (j *judge) leastAfter(l *life, hs []hold, next *hold) int {
	for len(hs) > 0 && j.h.undone(hs[len(hs)-1].step) {
		hs = hs[:len(hs)-1]
	}
	switch {
	case len(hs) == 0:
		return 1
	case redriven(l, hs[len(hs)-1], *next):
		return 1
	case hs[len(hs)-1].settled.untouched():
		return hs[len(hs)-1].Attempt
	}
	return hs[len(hs)-1].Attempt + 1
}

// counted checks one hand-out. free is since when, by the machine's clock, it could have been handed out.
func (j *judge) counted(l *life, since, free int64, least, most int, h *hold) {
	switch {
	case j.h.undone(h.step), j.h.jumped(min(since, h.Start), max(since, h.end())): // leases ended at once, perhaps those of claims on their way
	case !j.h.Traits.Supports(backend.SingleCopy) && (l.unclear() || j.h.broke(l.steps[0].Start, h.end())): // a copy has a count of its own
	case h.Attempt < least:
		j.fail("attempts", "came as attempt %d at %s, where %d was the least", h.Attempt, clockOf(h.End), least)
	case h.Attempt <= most:
	case !j.h.Traits.Supports(backend.ExactAttempts) && j.h.broke(l.steps[0].Start, h.end()): // the count of an earlier break may show late
	case j.h.broke(since, h.end()):
		j.counts.Hidden += h.Attempt - most
	case h.at-free >= j.shortest:
		j.counts.Hidden += h.Attempt - most
		j.stalled[h.Call] = true
	default:
		j.fail("attempts", "came as attempt %d at %s, and nobody had seen attempt %d", h.Attempt, clockOf(h.End), most)
	}
}

// stalledOf bounds the calls that told of a hand-out which nobody saw though nothing broke: one in so many. A process that stands still for a
// moment misses a whole claim, which may be hundreds of messages.
const stalledOf = 50

func (j *judge) vanished() {
	if n := len(j.stalled); n > max(j.counts.Calls/stalledOf, 10) {
		j.fail("attempts", "in %d of %d calls came messages with an attempt that nobody had seen, and nothing broke", n, j.counts.Calls)
	}
}
