package chaos

// books is invariant 13: at each moment in which somebody counted, Stats has as many messages as were pushed and are not done, cancelled or deleted. Calls that were under way
// then, and outcomes that nobody knows, leave a span; at the end of a drain it is narrow.
func (j *judge) books(ls []life) {
	counts := j.audits()
	if len(counts) == 0 {
		return
	}
	least, most := make([]int64, len(counts)), make([]int64, len(counts))
	for i := range ls {
		s := ls[i].stay()
		for k, c := range counts {
			if s.surely < c.Start && c.end() < s.maybeGone {
				least[k]++
			}
			if s.maybe < c.end() && c.Start < s.gone {
				most[k]++
			}
		}
	}
	for k, c := range counts {
		j.counts.Counted++
		if c.Count < least[k] || c.Count > most[k] {
			j.fail("books", "%d messages were counted at %s, where %d to %d were there", c.Count, clockOf(c.End), least[k], most[k])
		}
	}
}

// countsAtMost is of how many counts the books are checked: each goes through all messages.
const countsAtMost = 100

func (j *judge) audits() (all []*Call) {
	for i := range j.h.Calls {
		if c := &j.h.Calls[i]; c.Op == Count && !c.Aside && c.Err == "" && c.End != 0 {
			all = append(all, c)
		}
	}
	if len(all) <= countsAtMost {
		return all
	}
	some := make([]*Call, countsAtMost)
	for i := range some {
		some[i] = all[len(all)-1-i*len(all)/countsAtMost]
	}
	return some
}

// stay is when a message was in its queue: from maybe or surely on, until maybeGone or gone.
type stay struct{ maybe, surely, maybeGone, gone int64 }

// stay of an id that was pushed twice is all unsure, as is that of what is not in the queue that is counted.
func (l *life) stay() stay {
	s := stay{maybe: never, surely: never, maybeGone: never, gone: never}
	for _, c := range l.steps {
		switch {
		case c.Aside:
			return stay{maybe: never, surely: never}
		case !c.Out.may():
		case c.Op == Push:
			s.maybe = min(s.maybe, c.Start)
			if c.Out == OK {
				s.surely = min(s.surely, c.end())
			}
		case c.Op == Ack, c.Op == Cancel, c.Op == Delete:
			s.maybeGone = min(s.maybeGone, c.Start)
			if c.Out == OK {
				s.gone = min(s.gone, c.end())
			}
		}
	}
	if l.pushes() > 1 {
		s.surely, s.gone = never, never
	}
	return s
}
