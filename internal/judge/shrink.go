package judge

import "slices"

// Shrink returns the smallest part of a history that it finds to break a violation's rule: the calls
// on that message alone, and of these as few as possible. The faults stay, since they excuse.
func Shrink(h *History, v Violation) *History {
	small := h.about(v.N)
	needed := []Op{Push} // without it, everything is unexpected
	if unfinished := *small; v.Rule == "linearizable" {
		unfinished.Drained = false
		if unfinished.breaks(v) {
			small = &unfinished
		} else { // without the call that ended it, the message would only seem to be there still
			needed = []Op{Push, Receive, Ack, Nack, Dead, Cancel, Redrive, DeleteDead}
		}
	}
	for i := len(small.Calls) - 1; i >= 0; i-- {
		c := &small.Calls[i]
		if slices.Contains(needed, c.Op) && (len(c.Items) == 0 || c.Items[0].Out.may()) {
			continue
		}
		less := *small
		less.Calls = slices.Delete(slices.Clone(small.Calls), i, i+1)
		if less.breaks(v) {
			small = &less
		}
	}
	return small
}

// about is the history of one message.
func (h *History) about(n uint32) *History {
	one := *h
	one.Calls, one.Leftovers, one.Poison = nil, nil, nil
	for _, c := range h.Calls {
		items := slices.DeleteFunc(slices.Clone(c.Items), func(it Item) bool { return it.N != n })
		if len(items) > 0 || c.Op == Close {
			c.Items = items
			one.Calls = append(one.Calls, c)
		}
	}
	return &one
}

// breaks reports whether the history breaks the violation's rule by its message.
func (h *History) breaks(v Violation) bool {
	c := newChecker(h, nil)
	for _, m := range h.messages() {
		if m.n == v.N {
			c.check(&m)
		}
	}
	return slices.ContainsFunc(c.found, func(f Violation) bool { return f.Rule == v.Rule })
}
