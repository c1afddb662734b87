package chaos

import "slices"

// Shrink returns the smallest part of a history that it finds to break a rule by the message of a violation: the calls on that message alone,
// and of these no more than it takes. The faults stay, since they excuse.
func Shrink(h *History, v Violation) *History {
	small := h.about(v.N)
	needed := []Op{Push} // without it, anything is unexpected
	if unfinished := *small; v.Rule == "linear" {
		unfinished.Drained = false
		if unfinished.breaks(v) {
			small = &unfinished
		} else { // without what ended it, the message would only seem to be there still
			needed = []Op{Push, Take, Ack, Nack, Bury, Cancel, Redrive, Delete}
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
	one.Calls, one.Left, one.Poison = nil, nil, nil
	for _, c := range h.Calls {
		items := slices.DeleteFunc(slices.Clone(c.Items), func(it Item) bool { return it.N != n })
		if len(items) > 0 || c.Op == Close {
			c.Items = items
			one.Calls = append(one.Calls, c)
		}
	}
	return &one
}

// breaks reports whether the rule is broken here too.
func (h *History) breaks(v Violation) bool {
	j := newJudge(h)
	for _, l := range h.lives() {
		if l.n == v.N {
			j.judge(&l)
		}
	}
	return slices.ContainsFunc(j.found, func(f Violation) bool { return f.Rule == v.Rule })
}
