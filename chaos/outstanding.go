package chaos

import "time"

// Outstanding counts the messages that were pushed and that nobody has settled, and tells when a message was handed out last.
func Outstanding(h *History) (open int, last time.Time) {
	for _, l := range h.lives() {
		pushed := false
		for _, s := range l.steps {
			pushed = pushed || s.Op == Push && s.Out == OK
			if s.Op == Take && (last.IsZero() || s.End > last.UnixNano()) {
				last = time.Unix(0, s.End)
			}
		}
		if pushed && !l.has(Ack, Bury, Cancel, Delete) {
			open++
		}
	}
	return open, last
}
