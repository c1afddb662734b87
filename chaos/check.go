package chaos

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule is what a checker enforces. Invariant is the number of the promise in docs/guarantees.md.
type Rule struct {
	Name      string
	Invariant int
	check     func(*judge, *life)
}

// rules are those on the life of one message.
var rules = []Rule{
	{"early", 1, (*judge).early},
	{"lost", 2, (*judge).lost},
	{"unexpected", 3, (*judge).unexpected},
	{"again", 4, (*judge).again},
	{"lease", 5, (*judge).lease},
	{"attempts", 8, (*judge).attempts},
	{"linear", 6, (*judge).linear},
}

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
	j.whole()
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
	return j
}

func (j *judge) judge(l *life) {
	j.n = l.n
	j.moot(l)
	j.count(l)
	for _, r := range rules {
		r.check(j, l)
	}
}

func (j *judge) fail(rule, format string, args ...any) {
	j.found = append(j.found, Violation{rule, j.n, fmt.Sprintf(format, args...)})
}

// whole applies the rules on the history as a whole.
func (j *judge) whole() {
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
