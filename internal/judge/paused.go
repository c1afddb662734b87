package judge

import "time"

// paused: no claim is made while a pause is surely in force.
func (c *checker) paused(m *message) {
	for _, d := range m.deliveries() {
		for _, p := range c.pauses {
			if !d.vague && !d.Second && p.from < d.since && d.at < p.to {
				c.fail("paused", "was claimed at %s, %v after the queue was paused", clockOf(d.at), time.Duration(d.at-p.from))
			}
		}
	}
}

// stalledAtMost is for how long, in ns, a server may stand still before it executes a call whose
// outcome is unknown.
const stalledAtMost = int64(10 * time.Second)

// surePauses are the times in which the queue was surely paused: from the end of a call on, until
// another may have ended the pause.
func (h *History) surePauses() (all []span) {
	var calls []*Call
	for i := range h.Calls {
		if call := &h.Calls[i]; call.Op == PauseAll || call.Op == ResumeAll {
			calls = append(calls, call)
		}
	}
	for _, p := range calls {
		if p.Op != PauseAll || p.Err != "" || p.End == 0 || h.undone(step{Call: p}) {
			continue
		}
		sure := span{from: p.End, to: never}
		if p.Pause > 0 {
			sure.to = h.firstShown(p.Start, saturate(p.low, p.Pause))
		}
		for _, other := range calls {
			if other != p && other.latestEffect() > p.Start {
				sure.to = min(sure.to, other.Start)
			}
		}
		if sure.from < sure.to {
			all = append(all, sure)
		}
	}
	return all
}

func (c *Call) latestEffect() int64 {
	if c.Err == "" || c.End == 0 {
		return c.end()
	}
	return saturate(c.End, stalledAtMost)
}
