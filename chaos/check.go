package chaos

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule is what a checker enforces. Invariants are the numbers of the promises in docs/guarantees.md that it holds a run against.
type Rule struct {
	Name       string
	Invariants []int
	Says       string
	each       func(*judge, *life) // looks at one message; nil for a rule on the history as a whole
}

var rules = []Rule{
	{"early", []int{1}, "No message is handed out before the due time that follows from what was pushed, moved and given back.", (*judge).early},
	{"lost", []int{2, 10}, "What was pushed is done, cancelled or dead in the end.", (*judge).lost},
	{"drained", []int{2, 11}, "Healed and left alone, the queues run empty.", nil},
	{"drains", []int{2}, "A store that is full still hands out what it has, and lets go of it.", nil},
	{"unexpected", []int{3}, "Only what was pushed comes, after its push, whole.", (*judge).unexpected},
	{"apart", []int{3}, "A message comes out of the queue that it was pushed to, though another has its id too.", (*judge).apart},
	{"again", []int{4}, "Nothing comes after a successful ack, cancellation or deletion.", (*judge).again},
	{"lease", []int{5, 11}, "Leases exclude one another, also those that are extended for long; each is settled once, and what comes late is refused.", (*judge).lease},
	{"attempts", []int{8, 10}, "Attempt rises by one with each hand-out, and by none with what was given back untouched.", (*judge).attempts},
	{"linear", []int{4, 5, 6}, "Some order of the calls on a message explains all their answers.", (*judge).linear},
	{"order", []int{7}, "Each batch is sorted by due time and push, and so is all that a queue with one taker hands out.", nil},
	{"poison", []int{9}, "A message that kills its workers is dead after exactly `MaxAttempts`.", nil},
	{"wake-up", []int{11, 12}, "While nothing is broken, a taker that waits gets each message within the sweep, and what is under load; also while it sits on another.", nil},
	{"books", []int{13}, "`Stats` has as many messages as were pushed and are not done, cancelled or deleted.", nil},
	{"empty", []int{14}, "When all is settled, nothing of the queues is left in the store.", nil},
	{"input", []int{15}, "Bad input gets its typed error, in the midst of faults too; of what it would have pushed nothing ever comes.", nil},
}

// Rules are all that [Check] enforces.
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

// Verdict is what came out of a history.
type Verdict struct {
	Violations []Violation
	Counts     Counts
}

// Counts are figures of a history.
type Counts struct {
	Messages, Pushed, Unclear int // pushed: the push returned nil; unclear: it told nothing
	Calls, Taken, Again       int // again: hand-outs after a message's first
	Expiries, Nacks, Redriven int // of these, by cause
	Breaks, Copies            int
	Done, Cancelled, Dead     int
	Hidden                    int // hand-outs that nobody saw, as the attempts tell
	Linear, Undecided         int // messages whose history was checked to be linearizable
	Undone                    int // outcomes that the store may have undone, as declared
	UndoneLost                int // messages that this has cost
	Moot                      int // repeated calls that told what was not so
	Latest                    int64
	Ordered                   int   // pairs of hand-outs whose order was checked
	Woken                     int   // messages that somebody waited for while nothing was broken
	Slowest                   int64 // of these the longest wait
	Wrong                     int   // calls with bad input
	Counted                   int   // counts that were checked
}

// judge works through a history. Its rules look at one message each.
type judge struct {
	h      *History
	closes map[handle]int64
	counts Counts
	found  []Violation
	n      uint32

	shortest int64          // of the leases
	stalled  map[*Call]bool // see vanished
}

type handle struct{ proc, handle int }

// Check judges a history by all rules. It weakens outcomes that the store declared it may undo.
func Check(h *History) Verdict {
	j := newJudge(h)
	j.counts.Undone = h.weaken()
	ls := h.lives()
	for i := range ls {
		j.judge(&ls[i])
	}
	j.whole(ls)
	slices.SortStableFunc(j.found, func(a, b Violation) int { return cmp.Compare(a.N, b.N) })
	return Verdict{j.found, j.counts}
}

func newJudge(h *History) *judge {
	j := &judge{h: h, closes: make(map[handle]int64), stalled: make(map[*Call]bool), shortest: never}
	for i := range h.Calls {
		if c := &h.Calls[i]; c.Op == Close {
			j.closes[handle{c.Proc, c.Handle}] = c.Start
		} else if c.Op == Take {
			j.shortest = min(j.shortest, c.Lease)
		}
	}
	j.counts.Calls = len(h.Calls)
	h.read()
	return j
}

func (j *judge) judge(l *life) {
	j.n = l.n
	j.moot(l)
	j.count(l)
	for _, r := range rules {
		if r.each != nil {
			r.each(j, l)
		}
	}
}

func (j *judge) fail(rule, format string, args ...any) {
	j.found = append(j.found, Violation{rule, j.n, fmt.Sprintf(format, args...)})
}

// failOn is fail for a rule on the history as a whole that finds one message.
func (j *judge) failOn(n uint32, rule, format string, args ...any) {
	j.n = n
	j.fail(rule, format, args...)
	j.n = 0
}

// whole applies the rules on the history as a whole.
func (j *judge) whole(ls []life) {
	j.n = 0
	if !j.h.Drained {
		j.fail("drained", "healed and left alone, the queue did not run empty in time")
	}
	if len(j.h.Left) > 0 {
		j.fail("empty", "when all was settled the store still held %v", j.h.Left)
	}
	j.alien()
	j.drains()
	j.copied()
	j.vanished()
	j.poison()
	j.input()
	j.books(ls)
	places := placesOf(ls)
	j.order(places)
	j.wakes(places)
}

// alien finds what was handed out and never was a message of ours.
func (j *judge) alien() {
	for i := range j.h.Calls {
		for _, it := range j.h.Calls[i].Items {
			if it.N == 0 && j.h.Calls[i].Op == Take {
				j.fail("unexpected", "something came whose body has no number")
			}
		}
	}
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

func (j *judge) count(l *life) {
	c := &j.counts
	c.Messages++
	for _, s := range l.steps {
		switch {
		case s.Op == Push && s.Out == OK:
			c.Pushed++
		case s.Op == Push && s.Out == Unknown:
			c.Unclear++
		case s.Op == Take:
			c.Taken++
		case s.Op == Ack && s.Out == OK:
			c.Done++
		case s.Op == Cancel && s.Out == OK:
			c.Cancelled++
		case s.Op == Seen:
			c.Dead++
		}
	}
}

// only returns the steps of some operations that may have done something.
func (l *life) only(ops ...Op) []step {
	var some []step
	for _, s := range l.steps {
		if s.Out.may() && slices.Contains(ops, s.Op) {
			some = append(some, s)
		}
	}
	return some
}

func (l *life) has(ops ...Op) bool {
	return slices.ContainsFunc(l.steps, func(s step) bool { return s.Out.may() && slices.Contains(ops, s.Op) })
}

// pushes counts what may have put a message of this id there.
func (l *life) pushes() (n int) {
	for i := range l.steps {
		if l.steps[i].Op == Push && l.steps[i].Out.may() {
			n++
		}
	}
	return n
}
