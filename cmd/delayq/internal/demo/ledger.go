package demo

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq/internal/judge"
)

// A ledger records the demo's own calls and what it was handed. internal/judge checks each message's
// history. The queue's own account is not asked: a queue that is wrong about a due time is wrong about
// it in its deliveries too.
type ledger struct {
	now   func() time.Time
	began time.Time

	mu      sync.Mutex
	entries map[string]*entry
	sum     summary
	late    lateness
	open    int // entries that wait

	lastDue      time.Time // of all messages
	lastProgress time.Time // when an entry last ceased to wait
	cancelledDue time.Time // the latest due time of a cancelled message
	drained      chan struct{}
}

// entry is one message.
type entry struct {
	body       []byte
	due        time.Time // the earliest moment of the next delivery
	deliveries int
	state      state
	events     []event
	found      []judge.Violation // so far
}

// event is a call on a message that succeeded, in a third of the room that judge.Call takes.
type event struct {
	op        judge.Op
	at, lease int64
	item      judge.Item
}

// check holds what happened to the message against rules.
func (e *entry) check(rules ...string) []judge.Violation {
	h := judge.History{Calls: make([]judge.Call, len(e.events))}
	for i, ev := range e.events {
		h.Calls[i] = judge.Call{Op: ev.op, Start: ev.at, End: ev.at, Lease: ev.lease, Items: []judge.Item{ev.item}}
	}
	return judge.Check(&h, rules...).Violations
}

type state int

const (
	waiting state = iota
	handled
	cancelled
	dead
)

// renewed is the lease of a handler's message: the consumer renews it until the handler returns.
const renewed = 10 * 365 * day

func newLedger() *ledger {
	return &ledger{
		now:     time.Now,
		began:   time.Now(),
		entries: make(map[string]*entry),
		drained: make(chan struct{}, 1),
	}
}

// ns returns a time as the history has it. It goes by the monotonic clock, which nobody sets; a delivery
// that is early by it alone has its due time.
func (l *ledger) ns(at time.Time) int64 { return l.began.UnixNano() + int64(at.Sub(l.began)) }

// recordLocked adds an event to the message's history.
func (l *ledger) recordLocked(e *entry, op judge.Op, at time.Time, it judge.Item) {
	it.N, it.Out = 1, judge.OK
	if op != judge.Push {
		it.Token.Lo = uint64(e.deliveries)
	}
	ns := l.ns(at)
	if n := len(e.events); n > 0 && op != judge.Receive {
		ns = max(ns, e.events[n-1].at)
	}
	e.events = append(e.events, event{op: op, at: ns, item: it})
}

// push notes a message before it is pushed, since it may arrive before the push returns. due is
// the time before the push plus the delay, so the store's own due time is no earlier.
func (l *ledger) push(id string, body []byte, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &entry{body: body, events: make([]event, 0, 3)} // push, receive, ack
	l.entries[id] = e
	l.recordLocked(e, judge.Push, l.now(), judge.Item{Due: l.ns(due)})
	l.dueLocked(e, due)
	l.sum.pushed++
	l.open++
}

func (l *ledger) dueLocked(e *entry, due time.Time) {
	e.due = due
	l.lastDue = later(l.lastDue, due)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// unpush takes back the note of a push that failed, unless the message has come nevertheless.
func (l *ledger) unpush(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[id]; e != nil && e.deliveries == 0 {
		delete(l.entries, id)
		l.sum.pushed--
		l.leaveLocked()
	}
}

// leaveLocked counts a message that waits no more.
func (l *ledger) leaveLocked() {
	l.open--
	l.lastProgress = l.now()
	if l.open == 0 {
		select {
		case l.drained <- struct{}{}:
		default:
		}
	}
}

func (l *ledger) enterLocked(e *entry, s state) {
	if e.state == waiting {
		l.leaveLocked()
	}
	e.state = s
}

// delivery is what the ledger says of one.
type delivery struct {
	known    bool // pushed here
	late     time.Duration
	breaches []string // the promises that it breaks
}

func (l *ledger) deliver(id string, body []byte, at time.Time) delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	if e == nil {
		l.sum.foreign++
		return delivery{}
	}
	e.deliveries++
	d := delivery{known: true, late: judge.Late(e.due, at)}
	if d.late >= 0 {
		at = later(at, e.due)
	}
	if e.deliveries == 1 && d.late >= 0 {
		l.late = append(l.late, d.late)
	}
	l.recordLocked(e, judge.Receive, at, judge.Item{Altered: !bytes.Equal(body, e.body)})
	l.leaseLocked(e, at, renewed)
	d.breaches = l.breachesLocked(e)
	return d
}

// leaseLocked sets the lease of the last delivery.
func (l *ledger) leaseLocked(e *entry, from time.Time, lease time.Duration) {
	last := &e.events[len(e.events)-1]
	last.lease, last.item.Until = int64(lease), l.ns(from)+int64(lease)
}

// rules are those that a single message can break before the end.
var rules = []string{"early", "duplicated", "lease", "linearizable", "unexpected"}

// breachesLocked counts the violations that the last call has brought, one of each kind.
func (l *ledger) breachesLocked(e *entry) (breaches []string) {
	old := e.found
	e.found = e.check(rules...)
	counted := make(map[string]bool)
	for _, f := range e.found {
		if i := slices.Index(old, f); i >= 0 {
			old = slices.Delete(slices.Clone(old), i, i+1)
			continue
		}
		kind, n := l.sum.kind(f.Rule, e.state)
		if !counted[kind] {
			counted[kind] = true
			*n++
			breaches = append(breaches, kind+": it "+f.Detail)
		}
	}
	return breaches
}

// kind returns the summary's word for a broken rule, and its figure.
func (s *summary) kind(rule string, of state) (string, *int) {
	switch {
	case rule == "early":
		return "early", &s.early
	case rule == "unexpected":
		return "altered", &s.altered
	case of == cancelled:
		return "fired-after-cancel", &s.fired
	default:
		return "duplicate", &s.duplicates
	}
}

// done notes that a handler has finished its work.
func (l *ledger) done(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[id]; e.state == waiting {
		l.recordLocked(e, judge.Ack, l.now(), judge.Item{})
		l.enterLocked(e, handled)
		l.sum.handled++
	}
}

// failed notes that a handler is about to fail, and that the message may come again from then on.
func (l *ledger) failed(id string, again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, now := l.entries[id], l.now()
	l.recordLocked(e, judge.Nack, now, judge.Item{})
	nack := &e.events[len(e.events)-1]
	nack.item.Delay = l.ns(again) - nack.at
	l.dueLocked(e, again)
}

// died notes that a worker died with the message. Its lease began at the due time or after, so
// the next delivery is at least a lease later.
func (l *ledger) died(id string, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	l.leaseLocked(e, e.due, lease)
	l.dueLocked(e, e.due.Add(lease))
}

// cancelled notes that the store has agreed to cancel; it tells whether a worker has the message
// nevertheless.
func (l *ledger) cancelled(id string) (broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	if e.state == waiting {
		l.sum.cancelled++
	}
	l.recordLocked(e, judge.Cancel, l.now(), judge.Item{})
	l.enterLocked(e, cancelled)
	l.cancelledDue = later(l.cancelledDue, e.due)
	return len(l.breachesLocked(e)) > 0
}

// deadLettered notes that the message is a dead letter.
func (l *ledger) deadLettered(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	l.recordLocked(e, judge.Dead, l.now(), judge.Item{})
	l.enterLocked(e, dead)
	l.sum.dead++
}

// redriven notes that a dead letter is about to be redriven.
func (l *ledger) redriven(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, now := l.entries[id], l.now()
	l.recordLocked(e, judge.Redrive, now, judge.Item{})
	e.state = waiting
	l.dueLocked(e, now)
	l.sum.redriven++
	l.open++
}

// left notes how many messages a store holds at the end. With foreign ones about, what is left
// may be theirs.
func (l *ledger) left(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum.foreign == 0 {
		l.sum.left += int(n)
	}
}

// openIDs returns the ids of the messages that were not handled, cancelled or dead-lettered.
func (l *ledger) openIDs() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, e := range l.entries {
		if e.state == waiting {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// close returns the summary. What a whole run leaves open is lost; of a run cut short nobody can
// tell.
func (l *ledger) close(whole bool) (sum summary, lost []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if whole {
		lost = l.lostLocked()
	}
	l.sum.lost = len(lost)
	l.sum.p50, l.sum.p99, l.sum.max = l.late.quantiles()
	return l.sum, lost
}

// lostLocked returns the ids of the messages that nobody settled and that are no dead letters.
func (l *ledger) lostLocked() (ids []string) {
	for id, e := range l.entries {
		if e.state == dead {
			l.recordLocked(e, judge.Listed, l.now(), judge.Item{})
		}
		if len(e.check("lost")) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
