package judge

import "slices"

// markIndeterminate makes outcomes unknown where the store is known for them (docs/redis.md). A
// repeated push, whose first try lost its reply, succeeds where it finds a message of its id, content
// and due time, also when another push stored that.
func (c *checker) markIndeterminate(m *message) {
	if c.h.RepeatAfter == 0 {
		return
	}
	for _, s := range m.steps {
		if c.repeated(s) && (s.Op == Push && !s.Replace && s.Out == OK && m.pushedBefore(s) || m.changedMeanwhile(s) || c.misled(s)) {
			s.Item.Out = Unknown
			c.counts.Indeterminate++
		}
	}
}

// repeated reports whether the first reply to a call may have been lost: to a fault, or to the
// client's timeout on a busy server.
func (c *checker) repeated(s step) bool {
	return s.end()-s.Start >= c.h.RepeatAfter || c.h.broke(s.Start, s.end())
}

// misled reports whether a repetition may have taken what its first try did for another client's
// work, or the reverse, because the store's clock jumped between the two: it tells them apart by
// times.
func (c *checker) misled(s step) bool {
	return c.h.jumped(s.Start, s.end()) && (s.Op == Push && s.Out == Duplicate || (s.Op == Ack || s.Op == Nack) && s.Out == OK)
}

// changedMeanwhile reports whether a push may have met its own message as a duplicate: one that its
// first try stored, and that another call replaced or moved before the repetition.
func (m *message) changedMeanwhile(push step) bool {
	return push.Op == Push && !push.Replace && push.Out == Duplicate && slices.ContainsFunc(m.steps, func(s step) bool {
		changes := s.Op == Push && s.Replace || s.Op == Reschedule
		return changes && s.Out.may() && push.Start < s.end() && s.Start < push.end()
	})
}

// pushedBefore reports whether another push of the same id may have come first.
func (m *message) pushedBefore(push step) bool {
	for _, s := range m.only(Push) {
		if s.Call != push.Call && s.Start < push.end() {
			return true
		}
	}
	return false
}
