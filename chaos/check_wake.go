package chaos

import (
	"cmp"
	"slices"
	"time"
)

// wakeSlack is what a machine under load may add to the sweep.
const wakeSlack = int64(5 * time.Second)

// CalmAtLeast is how long nothing may be broken for the rule wake-up to see a message that comes too late.
func CalmAtLeast(sweep time.Duration) time.Duration {
	return time.Duration(recovery+wakeSlack) + sweep + 1300*time.Millisecond
}

// wakes is invariant 12, and what 11 promises to others than the one that is stuck: who waits gets a message within the sweep, also while somebody sits
// on another. On the queue beside the one taker waits all the time. For each message the time is summed up in which it was due and
// there, and that taker waited in a Receive which gave it nothing, or this message at last. Time in which
// something was broken tells nothing, nor does what happened to a message after it was first handed out.
func (j *judge) wakes(places []*placed) {
	var waits []*Call
	for i := range j.h.Calls {
		if c := &j.h.Calls[i]; c.Op == Take && c.Aside {
			waits = append(waits, c)
		}
	}
	slices.SortFunc(waits, func(a, b *Call) int { return cmp.Compare(a.Start, b.Start) })
	for n, p := range places {
		if p != nil && p.push.Aside && (p.first.Call == nil || p.handed) {
			j.woken(uint32(n), p, waits)
		}
	}
}

func (j *judge) woken(n uint32, p *placed, waits []*Call) {
	from, to := j.h.waited(p)
	calm := j.h.calmUntil(p.push.Start)
	var waited int64
	for _, c := range waits {
		if len(c.Items) == 0 || c == p.first.Call {
			waited += max(min(c.End, to, calm)-max(c.Start, from), 0)
		}
	}
	if to <= calm {
		j.counts.Woken++
		j.counts.Slowest = max(j.counts.Slowest, waited)
	}
	if waited > int64(j.h.Traits.Sweep)+wakeSlack {
		j.failOn(n, "wake-up", "was there and due at %s, and the taker that waited for it got it after %v of waiting", clockOf(from), time.Duration(waited))
	}
}

// waited is from when to when a message was there and due, by the machine's clock.
func (h *History) waited(p *placed) (from, to int64) {
	it := &p.push.Items[p.at]
	from, to = saturate(p.push.end(), it.Delay), int64(never)
	if it.Due != 0 {
		from = max(from, h.shownBy(p.push, it.Due))
	}
	if p.first.Call != nil {
		from, to = max(from, h.shownBy(p.first.Call, p.first.Due)), p.first.end()
	}
	return from, to
}

// shownBy is when the store's clock showed a time at latest, by the machine's clock, as it went during a call.
func (h *History) shownBy(c *Call, at int64) int64 {
	shift := int64(never)
	for s := range h.spells(c.Start, c.end()) {
		shift = min(shift, s.shift)
	}
	return at - shift
}
