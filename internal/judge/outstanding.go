package judge

import (
	"slices"
	"time"
)

// Unsettled returns the numbers of the messages that were pushed and that no call settled.
func Unsettled(h *History) (ns []uint32) {
	for _, m := range h.messages() {
		pushed := slices.ContainsFunc(m.steps, func(s step) bool { return s.Op == Push && s.Out == OK })
		if pushed && !m.has(Ack, Dead, Cancel, DeleteDead) {
			ns = append(ns, m.n)
		}
	}
	return ns
}

// LastDelivery is when a message was last handed out; the zero time for never.
func LastDelivery(calls []Call) (at time.Time) {
	for i := range calls {
		if c := &calls[i]; c.Op == Receive && len(c.Items) > 0 && c.End > at.UnixNano() {
			at = time.Unix(0, c.End)
		}
	}
	return at
}
