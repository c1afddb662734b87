package judge

import "slices"

// replaced: when a push with Replace has returned nil, no content is handed out or shown any more that
// was pushed before, by a push that had returned. What an unknown outcome pushed may come later.
func (c *checker) replaced(m *message) {
	if !m.replaces() {
		return
	}
	for _, d := range m.deliveries() {
		c.newest(m, d.step, d.since)
	}
	for _, s := range m.steps {
		if s.Op == Get && s.Out == OK && s.Content != 0 {
			c.newest(m, s, s.Start)
		}
	}
}

func (m *message) replaces() bool {
	for _, s := range m.steps {
		if s.Op == Push && s.Replace {
			return true
		}
	}
	return false
}

// surelyInFlight reports whether a worker held the message all the time of a call.
func (m *message) surelyInFlight(call step) bool {
	return slices.ContainsFunc(m.deliveries(), func(d *delivery) bool {
		settledAt := int64(never)
		if d.settled.Call != nil {
			settledAt = d.settled.Start
		}
		return d.end() < call.Start && call.end() < min(d.ends, settledAt)
	})
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// newest checks that what the store showed from a time on had not been replaced by then.
func (c *checker) newest(m *message, shown step, from int64) {
	var old step
	for _, s := range m.steps {
		if s.Op == Push && s.Content == shown.Content && s.Out.may() {
			old = s
		}
	}
	if old.Call == nil || old.Out == Unknown || c.h.undone(shown) {
		return
	}
	for _, s := range m.steps {
		if s.Op == Push && s.Replace && s.Out == OK && s.Start > old.end() && s.end() < from && !c.h.undone(s) {
			c.fail("replaced", "was shown with content %d at %s, though content %d, pushed after it, had replaced it at %s",
				shown.Content, clockOf(shown.end()), s.Content, clockOf(s.end()))
			return
		}
	}
}
