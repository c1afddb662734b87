package judge

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule is what a checker enforces. Invariants are the numbers of the promises in docs/guarantees.md
// that it holds a history against.
type Rule struct {
	Name       string
	Invariants []int
	Says       string
	message    func(*checker, *message) // looks at one message; may be nil
	whole      func(*checker)           // looks at the whole history; may be nil
}

var rules = []Rule{
	{"early", []int{1}, "No message is handed out before the due time that follows from what was pushed, rescheduled and given back.", (*checker).early, nil},
	{"lost", []int{2, 10}, "Each message that was pushed is acknowledged, cancelled or a dead letter in the end.", (*checker).lost, nil},
	{"drained", []int{2, 11}, "When faults are over and clients stop, the queues run empty.", nil, (*checker).drained},
	{"full", []int{2}, "A full store still hands out messages and accepts what settles them.", nil, (*checker).full},
	{"unexpected", []int{3}, "Only messages that were pushed are handed out or shown, after their push, unchanged.", (*checker).unexpected, (*checker).unknownBody},
	{"isolation", []int{3}, "A message comes out of the queue that it was pushed to, though a message of another queue has its id.", (*checker).isolation, nil},
	{"duplicated", []int{4}, "No message is handed out after a successful ack, cancellation or deletion.", (*checker).duplicated, (*checker).copies},
	{"lease", []int{5, 11}, "Leases of one message never overlap, extended ones included; each is settled once, and a call after its end is refused.", (*checker).lease, nil},
	{"attempts", []int{8, 10}, "Attempt rises by one with each delivery, but not for a message that was given back untouched.", (*checker).attempts, (*checker).unseen},
	{"linearizable", []int{4, 5, 6}, "Some order of the calls on a message explains everything that they returned.", (*checker).linearizable, nil},
	{"replaced", []int{4, 6}, "No older content is handed out or shown after a push with Replace of a newer one has returned nil.", (*checker).replaced, nil},
	{"order", []int{7}, "Each batch is sorted by due time and push, and so is everything that a queue with one worker hands out.", nil, (*checker).order},
	{"poison", []int{9}, "A message that kills its workers is a dead letter after exactly `MaxAttempts`, or `Attempts` of its own.", nil, (*checker).poison},
	{"paused", []int{10}, "No message is claimed between the return of `PauseAll` and the end of the pause.", (*checker).paused, nil},
	{"wake-up", []int{11, 12}, "While nothing is broken, a waiting worker gets each message within the sweep and the slack for load, also while it holds another.", nil, (*checker).wakeUp},
	{"accounting", []int{13}, "`Stats` counts the messages that were pushed and are not acknowledged, cancelled or deleted.", nil, (*checker).accounting},
	{"empty", []int{14}, "When every message is settled, the store holds nothing of the queues.", nil, (*checker).empty},
	{"input", []int{15}, "Bad input gets its typed error, during faults too, and none of what it would have pushed is ever handed out.", nil, (*checker).input},
}

// Rules returns every rule that [Check] enforces.
func Rules() []Rule { return slices.Clone(rules) }

// Violation is a broken rule.
type Violation struct {
	Rule   string
	N      uint32 // the message, 0 for none in particular
	Detail string
}

func (v Violation) String() string {
	if v.N == 0 {
		return v.Rule + ": " + v.Detail
	}
	return fmt.Sprintf("%s: message %d %s", v.Rule, v.N, v.Detail)
}

// Verdict is the result of a check.
type Verdict struct {
	Violations []Violation
	Counts     Counts
}

// Rules returns the names of the rules that were broken, sorted.
func (v Verdict) Rules() []string {
	var names []string
	for _, f := range v.Violations {
		names = append(names, f.Rule)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Counts are figures of a history.
type Counts struct {
	Calls, Messages             int
	Pushed, Unclear             int // messages whose push returned nil, and whose outcome is unknown
	Received, Redelivered       int
	Expiries, Nacks, Redriven   int // redeliveries, by cause
	Breaks, Copies              int // likewise
	Acked, Cancelled, Dead      int
	Unseen                      int // deliveries that no worker saw, as the attempts tell
	Linearizable, Undecided     int // messages whose history was searched for an order, and those it gave up
	Replaced, ReplacedInFlight  int // pushes with Replace that returned nil, and those that were surely of a message in flight
	Undone, UndoneLost          int // outcomes that the store may have undone, as declared, and the messages lost by it
	Indeterminate               int // outcomes of repeated calls that are unknown
	Ordered                     int // pairs of deliveries whose order was checked
	Woken                       int // messages that a worker waited for while nothing was broken
	Misused                     int // calls with bad input
	Counted                     int // calls of Stats that were checked
	Paused                      int // pauses that were surely in force for a while
	LatestDelivery, SlowestWake int64
}

// checker works through a history. Its rules look at one message each, or at all.
type checker struct {
	h      *History
	only   []string // the rules to report; all for none
	closes map[handle]int64
	counts Counts
	found  []Violation
	n      uint32

	messages []message
	places   []*placement // by number, where they are known

	shortest int64          // of the leases
	stalled  map[*Call]bool // see unseen
	pauses   []span         // in which the queue was surely paused
}

type handle struct{ proc, handle int }

// Check holds a history against the named rules, all of them for no names. It changes outcomes that
// the store declared it may undo to [Unknown].
func Check(h *History, names ...string) Verdict {
	c := newChecker(h, names)
	c.counts.Undone = h.applyDeclaredLoss()
	c.messages = h.messages()
	for i := range c.messages {
		c.check(&c.messages[i])
	}
	c.n, c.places = 0, placements(c.messages)
	for _, r := range rules {
		if r.whole != nil && c.wants(r.Name) {
			r.whole(c)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Violation) int { return cmp.Compare(a.N, b.N) })
	return Verdict{c.found, c.counts}
}

func newChecker(h *History, names []string) *checker {
	c := &checker{h: h, only: names, closes: make(map[handle]int64), stalled: make(map[*Call]bool), shortest: never}
	for i := range h.Calls {
		switch call := &h.Calls[i]; call.Op {
		case Close:
			c.closes[handle{call.Proc, call.Handle}] = call.Start
		case Receive:
			c.shortest = min(c.shortest, call.Lease)
		default:
		}
	}
	c.counts.Calls = len(h.Calls)
	h.readClocks()
	c.pauses = h.surePauses()
	c.counts.Paused = len(c.pauses)
	return c
}

func (c *checker) wants(rule string) bool { return len(c.only) == 0 || slices.Contains(c.only, rule) }

func (c *checker) check(m *message) {
	c.n = m.n
	c.markIndeterminate(m)
	c.count(m)
	for _, r := range rules {
		if r.message != nil && c.wants(r.Name) {
			r.message(c, m)
		}
	}
}

func (c *checker) fail(rule, format string, args ...any) {
	c.found = append(c.found, Violation{rule, c.n, fmt.Sprintf(format, args...)})
}

// failOn is fail for a rule on the whole history that finds one message.
func (c *checker) failOn(n uint32, rule, format string, args ...any) {
	c.n = n
	c.fail(rule, format, args...)
	c.n = 0
}

func (c *checker) count(m *message) {
	n := &c.counts
	n.Messages++
	for _, s := range m.steps {
		switch {
		case s.Op == Push && s.Out == OK:
			n.Pushed++
			n.Replaced += count(s.Replace)
			n.ReplacedInFlight += count(s.AfterInFlight && m.surelyInFlight(s))
		case s.Op == Push && s.Out == Unknown:
			n.Unclear++
		case s.Op == Receive:
			n.Received++
		case s.Op == Ack && s.Out == OK:
			n.Acked++
		case s.Op == Cancel && s.Out == OK:
			n.Cancelled++
		case s.Op == Listed:
			n.Dead++
		}
	}
}
