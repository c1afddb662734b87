package chaos

// apart belongs to invariant 3: a message comes out of the queue that it was pushed to, and of no other, however alike names and ids are.
func (j *judge) apart(l *life) {
	var pushed [2]bool
	for _, s := range l.only(Push) {
		pushed[queueOf(s)] = true
	}
	for _, s := range l.steps {
		if (s.Op == Take || s.Op == Seen) && !pushed[queueOf(s)] && pushed[1-queueOf(s)] {
			j.fail("apart", "was pushed to one queue, and process %d had it at %s from another", s.Proc, clockOf(s.End))
		}
	}
}

func queueOf(s step) int {
	if s.Aside {
		return 1
	}
	return 0
}
