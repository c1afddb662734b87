package conformance

import (
	"cmp"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// reference is a delay queue that is written for clarity alone: every backend must behave like it.
type reference struct {
	now     time.Time
	pushes  int
	deaths  int
	step    int // counts operations
	ms      map[string]*refMessage
	windows map[string]time.Time // ends, by id
	paused  bool
	until   time.Time     // when a pause ends; zero for no end
	grain   time.Duration // due times and ends of windows are rounded up to it
	lag     time.Duration // within which an ended lease is noticed
	exact   bool          // now is the store's clock
}

type refMessage struct {
	backend.Message
	due     time.Time
	exact   bool // due is the store's to the nanosecond
	seq     int
	attempt int
	state   string // "scheduled", "leased" or "dead"
	until   time.Time
	token   backend.Token // of the last lease
	first   time.Time     // the first push, with MaxWait
	reason  string
	died    time.Time
	death   int
	changed int // the number of the last operation that changed it

	replaced bool // in flight, and the rest is of a newer message
}

func newReference(now time.Time) *reference {
	return &reference{now: now, ms: make(map[string]*refMessage), windows: make(map[string]time.Time)}
}

func (r *reference) push(m backend.Message) error {
	old, first := r.ms[m.ID], r.state(m.ID)
	switch {
	case first == 0, m.Replace && old != nil && old.state == "scheduled":
	case m.AfterInFlight && first == backend.StateInFlight:
	case m.Replace && first == backend.StateInFlight:
		return backend.ErrInFlight
	default:
		return backend.Duplicate(first)
	}
	if m.UniqueFor > 0 {
		r.windows[m.ID] = r.roundUp(r.now.Add(m.UniqueFor))
	}
	msg := &refMessage{Message: m}
	r.ms[m.ID] = msg
	r.schedule(msg, m.Due, m.Delay)
	held := first == backend.StateInFlight
	if m.MaxWait > 0 {
		if held && !old.replaced {
			old.first = time.Time{}
		}
		r.bound(msg, old)
	}
	r.pushes++
	msg.seq = r.pushes
	if held {
		r.enter(msg, "leased")
		msg.replaced, msg.token, msg.until = true, old.token, old.until
	}
	return nil
}

// superseded ends the lease of a message that was replaced in flight, if it is one.
func (r *reference) superseded(m *refMessage) bool {
	was := m.replaced
	if was {
		m.replaced = false
		r.enter(m, "scheduled")
	}
	return was
}

func (r *reference) ack(m *refMessage) {
	if !r.superseded(m) {
		delete(r.ms, m.ID)
	}
}

// bound applies MaxWait to a message that replaces old, nil for none.
func (r *reference) bound(m, old *refMessage) {
	m.first = r.now
	if old != nil && !old.first.IsZero() {
		m.first = old.first
	}
	if last := r.roundUp(m.first.Add(m.MaxWait)); m.due.After(last) {
		m.due, m.exact = last, r.exact
	}
}

// schedule makes a message due at a time, or after a delay where the time is zero.
func (r *reference) schedule(m *refMessage, due time.Time, delay time.Duration) {
	m.exact = r.exact || !due.IsZero()
	if due.IsZero() {
		due = r.now.Add(delay)
	}
	m.due = r.roundUp(due)
	r.enter(m, "scheduled")
}

func (r *reference) enter(m *refMessage, state string) { m.state, m.changed = state, r.step }

func (r *reference) roundUp(t time.Time) time.Time {
	if down := t.Truncate(r.grain); r.grain > 0 && down.Before(t) {
		return down.Add(r.grain)
	}
	return t
}

// pass lets time pass and ends leases. It reports whether a lease has ended that the store need not
// have noticed yet, so that the state of its message is unknown.
func (r *reference) pass(d time.Duration) (unsure bool) {
	r.now = r.now.Add(d)
	for _, m := range r.ms {
		switch {
		case m.state != "leased":
		case !m.until.Add(r.lag).After(r.now):
			m.replaced = false
			r.enter(m, "scheduled")
		case !m.until.After(r.now):
			unsure = true
		}
	}
	return unsure
}

// in returns the messages in a state, in order.
func (r *reference) in(state string) (ms []*refMessage) {
	for _, m := range r.ms {
		if m.state == state {
			ms = append(ms, m)
		}
	}
	slices.SortFunc(ms, func(a, b *refMessage) int {
		if state == "dead" {
			return cmp.Compare(a.death, b.death)
		}
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq))
	})
	return ms
}

// state is the state of the message of an id, 0 where there is none.
func (r *reference) state(id string) backend.State {
	switch m := r.ms[id]; {
	case m == nil && r.windows[id].After(r.now):
		return backend.StateDone
	case m == nil:
		return 0
	case m.state == "leased":
		return backend.StateInFlight
	case m.state == "dead":
		return backend.StateDead
	case r.ready(m):
		return backend.StateReady
	}
	return backend.StateScheduled
}

func (r *reference) ready(m *refMessage) bool {
	return m.state == "scheduled" && !m.due.After(r.latest())
}

// latest is the time up to which messages are due. Where now is the start of the check, other
// messages are due much later.
func (r *reference) latest() time.Time {
	if r.exact {
		return r.now
	}
	return r.now.Add(time.Hour)
}

func (r *reference) take(m *refMessage, token backend.Token, lease time.Duration) {
	r.enter(m, "leased")
	m.until, m.token = r.now.Add(lease), token
	m.attempt++
}

func (r *reference) nack(m *refMessage, n backend.Return) {
	if r.superseded(m) {
		return
	}
	if n.Untouched {
		r.enter(m, "scheduled")
		m.attempt--
		return
	}
	if n.NewHeaders {
		m.Headers, m.first = n.Headers, time.Time{} // the time of the first push is one of the headers
	}
	r.schedule(m, time.Time{}, n.Delay)
}

func (r *reference) deadLetter(m *refMessage, reason string) {
	if r.superseded(m) {
		return
	}
	r.deaths++
	m.reason, m.died, m.death = reason, r.now, r.deaths
	r.enter(m, "dead")
}

func (r *reference) redrive(m *refMessage) {
	r.pushes++
	m.seq, m.attempt = r.pushes, 0
	r.schedule(m, time.Time{}, 0)
}

// trim deletes the oldest dead letters, and returns how many.
func (r *reference) trim(keep backend.Retention) int {
	letters := r.in("dead")
	gone := slices.DeleteFunc(slices.Clone(letters), func(m *refMessage) bool {
		beyond := keep.MaxCount > 0 && slices.Index(letters, m) < len(letters)-keep.MaxCount
		return !beyond && (keep.MaxAge == 0 || r.now.Sub(m.died) < keep.MaxAge)
	})
	for _, m := range gone {
		delete(r.ms, m.ID)
	}
	return len(gone)
}

func (r *reference) purge() {
	clear(r.ms)
	clear(r.windows)
}

func (r *reference) pause(p backend.Pause) {
	r.paused, r.until = true, p.EndAt(r.now)
	if !r.until.IsZero() {
		r.until = r.roundUp(r.until)
	}
}

// isPaused reports whether the queue is paused. Where now is the start of the check, other ends are much
// later.
func (r *reference) isPaused() bool {
	return r.paused && (r.until.IsZero() || r.until.After(r.latest()))
}

// waiting is the outcome of Cancel and Reschedule.
func (r *reference) waiting(id string) error {
	switch m := r.ms[id]; {
	case m == nil || m.state == "dead":
		return backend.ErrNotFound
	case m.state == "leased":
		return backend.ErrInFlight
	}
	return nil
}

// dead is the outcome of Redrive and DeleteDead.
func (r *reference) dead(id string) error {
	if m := r.ms[id]; m == nil || m.state != "dead" {
		return backend.ErrNotFound
	}
	return nil
}

// holds is the outcome of a settle under a lease.
func (r *reference) holds(l backend.Lease) error {
	if m := r.ms[l.ID]; m == nil || m.state != "leased" || m.token != l.Token {
		return backend.ErrLeaseLost
	}
	return nil
}

// stats counts messages. Times are zero where they are not known to the nanosecond.
func (r *reference) stats() (s backend.Stats) {
	if s.Paused = r.isPaused(); s.Paused && r.exact {
		s.PausedUntil = r.until
	}
	for _, m := range r.ms {
		switch m.state {
		case "scheduled":
			s.CountWaiting(m.due, r.latest())
		case "leased":
			s.InFlight++
		default:
			s.Dead++
		}
	}
	if !r.exact {
		s.HeadDue, s.OldestReady = time.Time{}, 0
	}
	return s
}
