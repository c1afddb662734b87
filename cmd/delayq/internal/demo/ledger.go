package demo

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A ledger is the demo's own account of what it pushed and what it got. The queue is judged by
// it alone: a queue that is wrong about a due time is wrong about it in its deliveries too.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
	sum     summary
	late    *lateness
	open    int // entries that wait

	lastDue      time.Time // of all messages
	lastProgress time.Time // when an entry last ceased to wait
	cancelledDue time.Time // the latest due time of a cancelled message
	drained      chan struct{}
}

type entry struct {
	body     []byte
	due      time.Time // the earliest moment of the next hand-out
	handOuts int
	excused  int // hand-outs that have an explanation
	state    state
}

type state int

const (
	waiting state = iota
	handled
	cancelled
	dead
)

func newLedger() *ledger {
	return &ledger{
		entries: make(map[string]*entry),
		late:    newLateness(),
		drained: make(chan struct{}, 1),
	}
}

// push notes a message before it is pushed, since it may arrive before the push returns. due is
// the time before the push plus the delay, so the store's own due time is no earlier.
func (l *ledger) push(id string, body []byte, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[id] = &entry{body: body, excused: 1}
	l.dueLocked(l.entries[id], due)
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
	if e := l.entries[id]; e != nil && e.handOuts == 0 {
		delete(l.entries, id)
		l.sum.pushed--
		l.leaveLocked()
	}
}

// leaveLocked counts a message that waits no more.
func (l *ledger) leaveLocked() {
	l.open--
	l.lastProgress = time.Now()
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

// handOut is what the ledger says of a delivery.
type handOut struct {
	known    bool // pushed here
	late     time.Duration
	breaches []string // the promises that it breaks
}

func (l *ledger) handOut(id string, body []byte, at time.Time) handOut {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	if e == nil {
		l.sum.foreign++
		return handOut{}
	}
	e.handOuts++
	h := handOut{known: true, late: at.Sub(e.due)}
	if e.handOuts == 1 && h.late >= 0 {
		l.late.record(h.late)
	}
	h.breaches = l.breachesLocked(e, body, h.late)
	return h
}

func (l *ledger) breachesLocked(e *entry, body []byte, late time.Duration) (breaches []string) {
	blame := func(n *int, text string) {
		*n++
		breaches = append(breaches, text)
	}
	if late < 0 {
		blame(&l.sum.early, fmt.Sprintf("early: %v before it was due", -late))
	}
	switch {
	case e.state == cancelled:
		blame(&l.sum.fired, "fired although it was cancelled")
	case e.handOuts > e.excused:
		blame(&l.sum.duplicates, "duplicate: nothing explains this hand-out")
	}
	if !bytes.Equal(body, e.body) {
		blame(&l.sum.altered, "altered: its body is not the one that was pushed")
	}
	return breaches
}

// done notes that a handler has finished its work.
func (l *ledger) done(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[id]; e.state == waiting {
		l.enterLocked(e, handled)
		l.sum.handled++
	}
}

// failed notes that a handler is about to fail, and that the message may come again from then on.
func (l *ledger) failed(id string, again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	e.excused++
	l.dueLocked(e, again)
}

// died notes that a worker died with the message. Its lease began at the due time or after, so
// the next hand-out is at least a lease later.
func (l *ledger) died(id string, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	e.excused++
	l.dueLocked(e, e.due.Add(lease))
}

// cancelled notes that the store has agreed to cancel; it tells whether a worker has the message
// nevertheless.
func (l *ledger) cancelled(id string) (broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	if broken = e.handOuts == e.excused; broken {
		l.sum.fired++
	}
	if e.state == waiting {
		l.sum.cancelled++
	}
	l.enterLocked(e, cancelled)
	l.cancelledDue = later(l.cancelledDue, e.due)
	return broken
}

// buried notes that the message is a dead letter.
func (l *ledger) buried(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enterLocked(l.entries[id], dead)
	l.sum.dead++
}

// redriven notes that a dead letter is about to be brought back.
func (l *ledger) redriven(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[id]
	e.state = waiting
	e.excused = e.handOuts + 1
	l.dueLocked(e, time.Now())
	l.sum.redriven++
	l.open++
}

// left notes how many messages the store holds at the end. With foreign ones about, what is left
// may be theirs.
func (l *ledger) left(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sum.foreign == 0 {
		l.sum.left = int(n)
	}
}

// openIDs returns the ids of the messages that were not handled, cancelled or buried.
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
	if whole {
		lost = l.openIDs()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum.lost = len(lost)
	l.sum.p50, l.sum.p99, l.sum.max = l.late.quantiles()
	return l.sum, lost
}
