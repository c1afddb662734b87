package chaos

// lost is invariant 2: what was pushed and not cancelled is done or a dead letter in the end. A message that was handed out and whose
// holder did not settle it is lost too if it does not come again.
func (j *judge) lost(l *life) {
	pushed, undone := false, false
	for _, s := range l.steps {
		if s.Op == Push {
			pushed = pushed || s.Out == OK
			undone = undone || s.Out == Unknown && s.Err == "" && j.h.undone(s)
		}
	}
	ended := l.has(Ack, Cancel, Delete, Seen)
	switch {
	case ended:
	case pushed:
		j.fail("lost", "was pushed, nobody has settled or cancelled it, and it is gone")
	case undone:
		j.counts.UndoneLost++
	}
}

// unexpected is invariant 3: only what was pushed comes, after it was pushed, and whole.
func (j *judge) unexpected(l *life) {
	pushed := int64(never)
	for _, s := range l.only(Push) {
		pushed = min(pushed, s.Start)
	}
	for _, s := range l.steps {
		if s.Op != Take && s.Op != Seen {
			continue
		}
		if s.Bad {
			j.fail("unexpected", "came with another body, headers or id than it was pushed with")
		}
		if s.end() < pushed {
			j.fail("unexpected", "came though its push had not happened")
		}
	}
}
