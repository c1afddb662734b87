package conformance

import (
	"cmp"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// reference is a delay queue as plain as can be: what every backend must be like, without a
// thought of speed. It keeps no content; the trial compares that.
type reference struct {
	now    time.Time
	pushes int
	ms     map[string]*refMessage
	grain  time.Duration // due times are rounded up to it
	lag    time.Duration // within which an ended lease is noticed
}

type refMessage struct {
	id      string
	due     time.Time
	seq     int
	attempt int
	state   string // "scheduled", "leased" or "dead"
	until   time.Time
	lease   backend.Delivery // the last one given
}

func (r *reference) push(id string, delay time.Duration) error {
	if r.ms[id] != nil {
		return backend.ErrDuplicate
	}
	r.pushes++
	r.ms[id] = &refMessage{id: id, due: r.roundUp(delay), seq: r.pushes, state: "scheduled"}
	return nil
}

func (r *reference) roundUp(delay time.Duration) time.Time {
	due := r.now.Add(delay)
	if r.grain > 0 && !due.Truncate(r.grain).Equal(due) {
		due = due.Truncate(r.grain).Add(r.grain)
	}
	return due
}

// pass lets time go by; leases end. It reports whether one has ended that need not have been
// noticed yet, so that nobody can say where its message is.
func (r *reference) pass(d time.Duration) (unsure bool) {
	r.now = r.now.Add(d)
	for _, m := range r.in("leased") {
		switch {
		case !m.until.Add(r.lag).After(r.now):
			m.state = "scheduled"
		case !m.until.After(r.now):
			unsure = true
		}
	}
	return unsure
}

// in returns the messages in a state, by id.
func (r *reference) in(state string) (ms []*refMessage) {
	for _, m := range r.ms {
		if m.state == state {
			ms = append(ms, m)
		}
	}
	slices.SortFunc(ms, func(a, b *refMessage) int { return cmp.Compare(a.id, b.id) })
	return ms
}

// ready returns what may be handed out, in order.
func (r *reference) ready() []*refMessage {
	ms := slices.DeleteFunc(r.in("scheduled"), func(m *refMessage) bool { return m.due.After(r.now) })
	slices.SortFunc(ms, func(a, b *refMessage) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq)) })
	return ms
}

func (r *reference) take(m *refMessage, d backend.Delivery, lease time.Duration) {
	m.state, m.until, m.lease = "leased", r.now.Add(lease), d
	m.attempt++
}

// waiting says what Cancel and Reschedule answer.
func (r *reference) waiting(id string) error {
	switch m := r.ms[id]; {
	case m == nil || m.state == "dead":
		return backend.ErrNotFound
	case m.state == "leased":
		return backend.ErrInFlight
	}
	return nil
}

// holds says what a settling of a delivery answers.
func (r *reference) holds(d backend.Delivery) error {
	if m := r.ms[d.ID]; m == nil || m.state != "leased" || m.lease.Token != d.Token {
		return backend.ErrLeaseLost
	}
	return nil
}
