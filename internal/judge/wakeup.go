package judge

import (
	"cmp"
	"slices"
	"time"
)

// wakeSlack is what load on the machine may add to the sweep.
const wakeSlack = int64(5 * time.Second)

// CalmAtLeast is how long nothing may be broken for the rule wake-up to see a message that comes too
// late.
func CalmAtLeast(sweep time.Duration) time.Duration {
	return time.Duration(recovery+wakeSlack) + sweep + 1300*time.Millisecond
}

// wakeUp: a waiting worker gets a message within the sweep, also while it holds another. The one
// worker of the second queue waits all the time. For each message the rule adds up the time in which
// it was due and there, and that worker was in a Receive which returned nothing, or this message at
// last. Time in which something was broken does not count, nor what follows the first delivery.
func (c *checker) wakeUp() {
	var waits []*Call
	for i := range c.h.Calls {
		if call := &c.h.Calls[i]; call.Op == Receive && call.Second {
			waits = append(waits, call)
		}
	}
	slices.SortFunc(waits, func(a, b *Call) int { return cmp.Compare(a.Start, b.Start) })
	for n, p := range c.places {
		if p != nil && p.push.Second && (p.first.Call == nil || p.known) {
			c.woken(uint32(n), p, waits)
		}
	}
}

func (c *checker) woken(n uint32, p *placement, waits []*Call) {
	from, to := c.h.waited(p)
	calm := c.h.calmUntil(p.push.Start)
	var waited int64
	for _, call := range waits {
		if len(call.Items) == 0 || call == p.first.Call {
			waited += max(min(call.End, to, calm)-max(call.Start, from), 0)
		}
	}
	if to <= calm {
		c.counts.Woken++
		c.counts.SlowestWake = max(c.counts.SlowestWake, waited)
	}
	if waited > int64(c.h.Traits.Sweep)+wakeSlack {
		c.failOn(n, "wake-up", "was there and due at %s, and the worker that waited for it got it after %v of waiting", clockOf(from), time.Duration(waited))
	}
}

// waited is from when to when a message was there and due, by the machine's clock.
func (h *History) waited(p *placement) (from, to int64) {
	it := &p.push.Items[p.at]
	from, to = saturate(p.push.end(), it.Delay), int64(never)
	if it.Due != 0 {
		from = max(from, h.lastShown(p.push, it.Due))
	}
	if p.first.Call != nil {
		from, to = max(from, h.lastShown(p.first.Call, p.first.Due)), p.first.end()
	}
	return from, to
}

// lastShown is when the store's clock showed a time at the latest, by the machine's clock, as it
// went during a call.
func (h *History) lastShown(c *Call, at int64) int64 {
	shift := int64(never)
	for s := range h.spans(c.Start, c.end()) {
		shift = min(shift, s.shift)
	}
	return at - shift
}

// calmUntil is until when from then on nothing was broken that the second queue depends on.
func (h *History) calmUntil(from int64) int64 {
	until := int64(never)
	for _, w := range h.Windows {
		if !w.Elsewhere && w.End+recovery >= from {
			until = min(until, w.Start)
		}
	}
	for _, j := range h.ClockJumps {
		if j.End+recovery >= from {
			until = min(until, j.Start)
		}
	}
	return until
}
