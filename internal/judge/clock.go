package judge

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// ClockJump is a change of the store's clock. From some moment between Start and End on it differs
// from the machine's by Shift ns; before the first jump the two are equal. With Frozen the clock
// stands still and shows Shift, in ns since 1970.
type ClockJump struct {
	Start  int64 `json:"start"`
	End    int64 `json:"end"`
	Shift  int64 `json:"shift"`
	Frozen bool  `json:"frozen,omitempty"`
}

// JumpTo calls set, which makes the store's clock jump, and returns when that was.
func JumpTo(shift time.Duration, set func(time.Duration)) ClockJump {
	j := ClockJump{Start: now(), Shift: int64(shift)}
	set(shift)
	j.End = now()
	return j
}

// Freeze calls set, which makes the store's clock stand still at a time, and returns when that was.
func Freeze(set func() time.Time) ClockJump {
	j := ClockJump{Start: now(), Frozen: true}
	j.Shift = set().UnixNano()
	j.End = now()
	return j
}

// Late returns how long after due a message came, by the wall clock or the monotonic one, whichever
// shows more. Stores go by the wall clock, which may be set meanwhile, and leases within a process by
// the monotonic one. What is negative is early by both.
func Late(due, at time.Time) time.Duration { return max(at.Sub(due), at.Round(0).Sub(due.Round(0))) }

// span is a time, by the machine's clock, in which the store's may have differed by shift. While
// the clock jumps, the spans before and after overlap.
type span struct {
	from, to, shift int64
	frozen          bool
}

// shows is what the store's clock shows at a time of the machine's.
func (s span) shows(at int64) int64 {
	if s.frozen {
		return s.shift
	}
	return at + s.shift
}

// reaches returns when the store's clock first shows a time or a later one in the span.
func (s span) reaches(reading int64) (at int64, ok bool) {
	if s.frozen {
		return s.from, reading <= s.shift
	}
	at = max(s.from, reading-s.shift)
	return at, at <= s.to
}

// spans are those between two times, one after the other.
func (h *History) spans(from, to int64) iter.Seq[span] {
	return func(yield func(span) bool) {
		begun, _ := slices.BinarySearchFunc(h.ClockJumps, from, func(j ClockJump, at int64) int { return cmp.Compare(j.End, at) })
		for i := begun; i <= len(h.ClockJumps); i++ {
			s := span{from: from, to: to}
			if i > 0 {
				j := &h.ClockJumps[i-1]
				s.from, s.shift, s.frozen = max(from, j.Start), j.Shift, j.Frozen
			}
			if i < len(h.ClockJumps) {
				s.to = min(to, h.ClockJumps[i].End)
			}
			if s.from > to || !yield(s) {
				return
			}
		}
	}
}

// earliest is the least that the store's clock may have shown between two times of the machine's.
func (h *History) earliest(from, to int64) int64 {
	least := int64(never)
	for s := range h.spans(from, to) {
		least = min(least, s.shows(s.from))
	}
	return least - h.ClockSkew
}

// latest is the most that the store's clock may have shown between two times of the machine's.
func (h *History) latest(from, to int64) int64 {
	if to == never {
		return never
	}
	most := int64(-never)
	for s := range h.spans(from, to) {
		most = max(most, s.shows(s.to))
	}
	return saturate(most, h.ClockSkew)
}

// firstShown is when, by the machine's clock, the store's may first have shown a time or a later
// one, from some moment on.
func (h *History) firstShown(from, reading int64) int64 {
	at := int64(never)
	if reading == never {
		return at
	}
	for s := range h.spans(from, never) {
		if t, ok := s.reaches(reading - h.ClockSkew); ok {
			at = min(at, t)
		}
	}
	return at
}

const (
	grain = int64(time.Millisecond) // to which the times of claims are rounded up
	tick  = int64(time.Microsecond) // to which a server reads its clock
)

// claimTimes returns when, by the machine's clock, a claim may have been made that was at this time
// by the store's: nothing where the store's clock did not show it, and several spans where it showed
// the time more than once.
func (h *History) claimTimes(claim int64, c *Call) (some []span) {
	for s := range h.spans(c.earliestClaim(), c.end()) {
		switch {
		case s.frozen && s.shift <= claim && claim <= s.shift+int64(h.Traits.Resolution):
			some = append(some, span{from: max(s.from, c.Start), to: s.to})
		case s.frozen:
		default:
			if at := claim - s.shift; at+tick >= s.from && at-grain <= s.to {
				some = append(some, span{from: at - grain, to: at})
			}
		}
	}
	return some
}

// earliestClaim is since when the store may have made the claim that a Receive returned. A server
// may have made it for an earlier Receive on the same handle, whose context ended: its messages are
// handed out for as long as their leases last.
func (c *Call) earliestClaim() int64 { return c.Start - c.Lease }

// jumped reports whether the store's clock jumped between two times. A frozen clock that is moved
// on does not jump.
func (h *History) jumped(from, to int64) bool {
	return slices.ContainsFunc(h.ClockJumps, func(j ClockJump) bool { return !j.Frozen && j.Start <= to && from <= j.End })
}

// readClocks works out what the store's clock may have shown during each call.
func (h *History) readClocks() {
	for i := range h.Calls {
		c := &h.Calls[i]
		from := c.Start
		if c.Op == Receive {
			from = c.earliestClaim()
		}
		c.low, c.high = h.earliest(c.Start, c.end()), h.latest(from, c.end())
	}
}

// least is the least that the store's clock may have shown when the step was done. A step whose
// outcome is unknown may also be done later, by a server that stood still in between.
func (m *message) least(s step) int64 {
	if s.Out == Unknown {
		return m.h.earliest(s.Start, never)
	}
	return s.low
}

// most is the most that the store's clock may have shown when the step was done.
func (m *message) most(s step) int64 {
	if s.Out == Unknown && m.h.jumped(s.Start, never) {
		return never
	}
	return s.high
}
