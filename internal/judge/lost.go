package judge

// lost: a message that was pushed and not cancelled is acknowledged or a dead letter in the end. A
// message whose worker never settled it is lost too unless it is handed out again.
func (c *checker) lost(m *message) {
	pushed, undone := false, false
	for _, s := range m.steps {
		if s.Op == Push {
			pushed = pushed || s.Out == OK
			undone = undone || s.Out == Unknown && s.Err == "" && c.h.undone(s)
		}
	}
	switch {
	case m.has(Ack, Cancel, DeleteDead, Listed):
	case pushed:
		c.fail("lost", "was pushed, nobody has settled or cancelled it, and it is gone")
	case undone:
		c.counts.UndoneLost++
	}
}

func (c *checker) drained() {
	if !c.h.Drained {
		c.fail("drained", "the queue did not run empty in time after the faults")
	}
}

func (c *checker) empty() {
	if len(c.h.Leftovers) > 0 {
		c.fail("empty", "when every message was settled the store still held %v", c.h.Leftovers)
	}
}
