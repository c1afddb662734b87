package judge

// isolation: a message comes out of the queue that it was pushed to, and of no other, however
// similar names and ids are.
func (c *checker) isolation(m *message) {
	var first, second bool
	for _, s := range m.only(Push) {
		first, second = first || !s.Second, second || s.Second
	}
	for _, s := range m.steps {
		if (s.Op == Receive || s.Op == Listed) && first != second && s.Second != second {
			c.fail("isolation", "was pushed to one queue, and process %d got it at %s from another", s.Proc, clockOf(s.End))
		}
	}
}
