package chaos

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Leap is a jump of the store's clock. From some moment between Start and End on it is off the machine's by Shift, in ns.
type Leap struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Shift int64 `json:"shift"`
}

// LeapTo has set make the store's clock jump, and tells when that was.
func LeapTo(shift time.Duration, set func(time.Duration)) Leap {
	l := Leap{Start: now(), Shift: int64(shift)}
	set(shift)
	l.End = now()
	return l
}

// spell is a time, by the machine's clock, in which the store's may have been off by shift. While it jumps, both the spell before and
// the one behind it last.
type spell struct{ from, to, shift int64 }

// spells are those between two times, one after the other.
func (h *History) spells(from, to int64) iter.Seq[spell] {
	return func(yield func(spell) bool) {
		begun, _ := slices.BinarySearchFunc(h.Leaps, from, func(l Leap, at int64) int { return cmp.Compare(l.End, at) })
		for i := begun; i <= len(h.Leaps); i++ {
			s := spell{from, to, 0}
			if i > 0 {
				s.from, s.shift = max(from, h.Leaps[i-1].Start), h.Leaps[i-1].Shift
			}
			if i < len(h.Leaps) {
				s.to = min(to, h.Leaps[i].End)
			}
			if s.from > to || !yield(s) {
				return
			}
		}
	}
}

// soonest is the least that the store's clock may have shown between two times of the machine's.
func (h *History) soonest(from, to int64) int64 {
	least := int64(never)
	for s := range h.spells(from, to) {
		least = min(least, s.from+s.shift)
	}
	return least
}

// latest is the most that the store's clock may have shown between two times of the machine's.
func (h *History) latest(from, to int64) int64 {
	if to == never {
		return never
	}
	most := int64(-never)
	for s := range h.spells(from, to) {
		most = max(most, s.to+s.shift)
	}
	return most
}

// shown is when, by the machine's clock, the store's may first have shown a time or a later one, from some moment on.
func (h *History) shown(from, reading int64) int64 {
	at := int64(never)
	if reading == never {
		return at
	}
	for s := range h.spells(from, never) {
		if t := max(s.from, reading-s.shift); t <= s.to {
			at = min(at, t)
		}
	}
	return at
}

const (
	grain = int64(time.Millisecond) // to which the times of claims are rounded up
	tick  = int64(time.Microsecond) // to which a server reads its clock
)

// moments are when, by the machine's clock, a claim may have been made that was at this time by the store's: none where the store's clock
// did not show it, and several where it did so more than once while the claim may have been made.
func (h *History) moments(claim int64, c *Call) []int64 {
	var some []int64
	for s := range h.spells(c.claimed(), c.end()) {
		if at := claim - s.shift; at+tick >= s.from && at-grain <= s.to {
			some = append(some, at)
		}
	}
	return some
}

// claimed is since when the store may have made the claim of a Receive. It may have been made for one before it, on the same
// handle, whose context ended: what came of it is handed out for as long as its lease lasts.
func (c *Call) claimed() int64 { return c.Start - c.Lease }

// jumped reports whether the store's clock jumped between two times.
func (h *History) jumped(from, to int64) bool {
	return slices.ContainsFunc(h.Leaps, func(l Leap) bool { return l.Start <= to && from <= l.End })
}

// read works out what the store's clock may have shown during each call. What came of it unknown may also be done later, by
// a server that stands still and then reads what it was sent: see least and most.
func (h *History) read() {
	for i := range h.Calls {
		c := &h.Calls[i]
		from := c.Start
		if c.Op == Take {
			from = c.claimed()
		}
		c.low, c.high = h.soonest(c.Start, c.end()), h.latest(from, c.end())
	}
}

// least is the least that the store's clock may have shown when the step was done.
func (l *life) least(s step) int64 {
	if s.Out == Unknown {
		return l.h.soonest(s.Start, never)
	}
	return s.low
}

// most is the most that the store's clock may have shown when the step was done.
func (l *life) most(s step) int64 {
	if s.Out == Unknown && l.h.jumped(s.Start, never) {
		return never
	}
	return s.high
}
