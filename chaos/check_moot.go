package chaos

// moot makes outcomes unknown where the store is known for them (docs/redis.md): a repeated push, whose first try lost its reply, succeeds
// where it finds a message of its id, content and due time, also when another push has stored that.
func (j *judge) moot(l *life) {
	if !j.h.Moot {
		return
	}
	for _, s := range l.steps {
		if j.repeated(s) && (s.Op == Push && s.Out == OK && l.pushedBefore(s) || j.misled(s)) {
			s.Item.Out = Unknown
			j.counts.Moot++
		}
	}
}

// repeated reports whether the first reply to a call may have been lost: by what broke, or since a busy server let the client wait for too long.
func (j *judge) repeated(s step) bool {
	return s.end()-s.Start >= int64(readTime) || j.h.broke(s.Start, s.end())
}

// misled reports whether a repetition may have taken what its first try did for somebody else's, or the other way round, because the store's
// clock jumped between the two: it tells them apart by times.
func (j *judge) misled(s step) bool {
	return j.h.jumped(s.Start, s.end()) && (s.Op == Push && s.Out == Duplicate || (s.Op == Ack || s.Op == Nack) && s.Out == OK)
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
