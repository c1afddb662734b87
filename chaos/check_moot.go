package chaos

// moot makes outcomes unknown where the store is known for them (docs/redis.md): a repeated push, whose first try lost its reply, succeeds
// where it finds a message of its id, content and due time, also when another push has stored that.
func (j *judge) moot(l *life) {
	if !j.h.Moot || len(l.steps) < 3 {
		return
	}
	for _, s := range l.steps {
		if s.Op == Push && s.Out == OK && j.h.broke(s.Start, s.end()) && l.pushedBefore(s) {
			s.Item.Out = Unknown
			j.counts.Moot++
		}
	}
}

// pushedBefore reports whether another push of the same id may have come first.
func (l *life) pushedBefore(push step) bool {
	for _, s := range l.steps {
		if s.Op == Push && s.Call != push.Call && s.Out.may() && s.Start < push.end() {
			return true
		}
	}
	return false
}
