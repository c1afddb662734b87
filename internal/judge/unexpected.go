package judge

// unexpected: only messages that were pushed are handed out or shown, after their push, unchanged.
func (c *checker) unexpected(m *message) {
	pushed := int64(never)
	for _, s := range m.only(Push) {
		pushed = min(pushed, s.Start)
	}
	for _, s := range m.steps {
		if s.Op != Receive && s.Op != Listed && (s.Op != Get || s.Out != OK) {
			continue
		}
		if s.Altered {
			c.fail("unexpected", "came with another body, headers or id than it was pushed with")
		}
		if s.end() < pushed {
			c.fail("unexpected", "came though its push had not happened")
		}
	}
}

func (c *checker) unknownBody() {
	for i := range c.h.Calls {
		for _, it := range c.h.Calls[i].Items {
			if it.N == 0 && c.h.Calls[i].Op == Receive {
				c.fail("unexpected", "a message came that nobody pushed")
			}
		}
	}
}
