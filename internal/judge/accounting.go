package judge

// accounting: each Stats counts the messages that were pushed and are not acknowledged, cancelled or
// deleted. Calls that ran at the same time, and unknown outcomes, leave a range; at the end of a
// drain it is narrow.
func (c *checker) accounting() {
	counts := c.statsCalls()
	if len(counts) == 0 {
		return
	}
	least, most := make([]int64, len(counts)), make([]int64, len(counts))
	for i := range c.messages {
		p := c.messages[i].presence()
		for k, s := range counts {
			if p.surely < s.Start && s.end() < p.maybeGone {
				least[k]++
			}
			if p.maybe < s.end() && s.Start < p.gone {
				most[k]++
			}
		}
	}
	for k, s := range counts {
		c.counts.Counted++
		if s.Count < least[k] || s.Count > most[k] {
			c.fail("accounting", "Stats counted %d messages at %s, where %d to %d were there", s.Count, clockOf(s.End), least[k], most[k])
		}
	}
}

// statsAtMost bounds the calls of Stats that are checked: each goes through all messages.
const statsAtMost = 100

func (c *checker) statsCalls() (all []*Call) {
	for i := range c.h.Calls {
		if s := &c.h.Calls[i]; s.Op == Stats && !s.Second && s.Err == "" && s.End != 0 {
			all = append(all, s)
		}
	}
	if len(all) <= statsAtMost {
		return all
	}
	some := make([]*Call, statsAtMost)
	for i := range some {
		some[i] = all[len(all)-1-i*len(all)/statsAtMost]
	}
	return some
}

// presence is when a message was in its queue: from maybe or surely on, until maybeGone or gone.
type presence struct{ maybe, surely, maybeGone, gone int64 }

// presence of an id that was pushed twice is all unsure. A message of the second queue is not
// counted.
func (m *message) presence() presence {
	p := presence{never, never, never, never}
	for _, s := range m.steps {
		switch {
		case s.Second:
			return presence{maybe: never, surely: never}
		case !s.Out.may():
		case s.Op == Push:
			p.maybe = min(p.maybe, s.Start)
			if s.Out == OK {
				p.surely = min(p.surely, s.end())
			}
		case s.Op == Ack, s.Op == Cancel, s.Op == DeleteDead:
			p.maybeGone = min(p.maybeGone, s.Start)
			if s.Out == OK {
				p.gone = min(p.gone, s.end())
			}
		}
	}
	if len(m.only(Push)) > 1 {
		p.surely, p.gone = never, never
	}
	return p
}
