package chaos

import (
	"slices"
	"time"
)

// Outstanding counts the messages that were pushed and that nobody has settled, and tells when a message was handed out last.
func Outstanding(h *History) (open int, last time.Time) {
	for _, l := range h.lives() {
		for _, s := range l.steps {
			if s.Op == Take && (last.IsZero() || s.End > last.UnixNano()) {
				last = time.Unix(0, s.End)
			}
		}
		if l.unsettled() {
			open++
		}
	}
	return open, last
}

// Unsettled are the messages that Outstanding counts.
func Unsettled(h *History) (ns []uint32) {
	for _, l := range h.lives() {
		if l.unsettled() {
			ns = append(ns, l.n)
		}
	}
	return ns
}

func (l *life) unsettled() bool {
	pushed := slices.ContainsFunc(l.steps, func(s step) bool { return s.Op == Push && s.Out == OK })
	return pushed && !l.has(Ack, Bury, Cancel, Delete)
}
