package chaos

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/delayq/delayq/backend"
)

// linear is invariant 6, and 4 and 5 once more: seen alone, each message goes from one state to the next at some moment within each
// call. porcupine looks for these moments. Lives of a push, a hand-out and an ack one after the other need no search.
//
// It is for stores where an id is one message. A store that copies messages may have two.
func (j *judge) linear(l *life) {
	if !j.h.Traits.Supports(backend.SingleCopy) || l.plain() {
		return
	}
	switch {
	case len(l.steps) > brokenSteps && len(j.found) > 0 && j.found[len(j.found)-1].N == l.n:
		return // it is known to be broken, and a search that fails tries everything
	case len(l.steps) > searchSteps:
		j.counts.Undecided++
		return
	}
	j.counts.Linear++
	switch porcupine.CheckOperationsTimeout(lifeModel, j.operations(l), searchAtMost) {
	case porcupine.Illegal:
		j.fail("linear", "went through states that no order of its calls explains")
	case porcupine.Unknown:
		j.counts.Undecided++
	case porcupine.Ok:
	}
}

const (
	searchAtMost = 2 * time.Second
	searchSteps  = 60
	brokenSteps  = 8
)

// plain is the life that most messages have.
func (l *life) plain() bool {
	if len(l.steps) != 3 {
		return false
	}
	push, take, ack := l.steps[0], l.steps[1], l.steps[2]
	return push.Op == Push && take.Op == Take && ack.Op == Ack && push.Out == OK && ack.Out == OK &&
		take.end() > push.Start && ack.Start > take.Start && ack.Token == take.Token && push.End > 0
}

type place uint8

const (
	nowhere place = iota
	waits
	isHeld
	isDead
)

// state is where a message is. A lease that nobody saw is as good as waiting.
type state struct {
	place place
	token backend.Token
}

// input is an operation of the model: that of a step, or the end of a lease, or the end of it all.
type input struct {
	op    Op
	out   Outcome
	token backend.Token
	soft  bool // it may not have happened after all
	extra extra
}

type extra uint8

const (
	noExtra extra = iota
	leaseEnds
	gone
)

func (j *judge) operations(l *life) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(in input, from, to int64) {
		ops = append(ops, porcupine.Operation{Input: in, Call: from, Return: to})
	}
	for _, s := range l.steps {
		to := s.end()
		if s.Out == Unknown {
			to = never
		}
		if s.Op != Take {
			add(input{op: s.Op, out: s.Out, token: s.Token, soft: j.h.undone(s)}, s.Start, to)
		}
	}
	for _, h := range l.holds() {
		add(input{op: Take, out: h.Out, token: h.Token, soft: j.h.undone(h.step)}, h.begun(l), h.end())
		add(input{extra: leaseEnds, token: h.Token}, max(h.ends, h.begun(l)), never)
	}
	if j.h.Drained {
		last := l.latest()
		add(input{extra: gone}, last+1, never)
	}
	return ops
}

// latest is when the last call of a life returned, of those that did.
func (l *life) latest() (at int64) {
	for _, s := range l.steps {
		at = max(at, s.Start, s.End)
	}
	return at
}

var lifeModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(st, in, _ any) []any { return states(st.(state).step(in.(input))) },
}).ToModel()

func states(ss []state) []any {
	out := make([]any, len(ss))
	for i, s := range ss {
		out[i] = s
	}
	return out
}

// step returns the states that an operation may lead to, none where it cannot be.
func (st state) step(in input) []state {
	switch in.extra {
	case leaseEnds:
		if st.place == isHeld && st.token == in.token {
			return []state{{place: waits}}
		}
		return []state{st}
	case gone:
		return only(st.place == nowhere, st)
	case noExtra:
	}
	next, can := st.after(in)
	switch {
	case in.out == OK && !in.soft:
		return only(can, next)
	case in.out.may():
		return append(only(can && next != st, next), st)
	default:
		return only(in.soft || st.refuses(in), st)
	}
}

func only(can bool, st state) []state {
	if !can {
		return nil
	}
	return []state{st}
}

// after is what an operation makes of a state, where it succeeds.
func (st state) after(in input) (next state, can bool) {
	mine := st.place == isHeld && st.token == in.token
	switch in.op {
	case Push:
		return state{place: waits}, st.place == nowhere
	case Take:
		return state{place: isHeld, token: in.token}, st.place == waits
	case Ack:
		return state{}, mine
	case Nack:
		return state{place: waits}, mine
	case Extend:
		return st, mine
	case Bury:
		return state{place: isDead}, mine
	case Cancel:
		return state{}, st.place == waits
	case Move:
		return st, st.place == waits
	case Redrive:
		return state{place: waits}, st.place == isDead
	case Delete:
		return state{}, st.place == isDead
	case Seen:
		return st, st.place == isDead
	default:
		return st, true
	}
}

// refuses reports whether an operation may meet this refusal in a state.
func (st state) refuses(in input) bool {
	switch in.out {
	case Duplicate:
		return st.place != nowhere
	case LeaseLost:
		return st.place != isHeld || st.token != in.token
	case InFlight:
		return st.place == isHeld || st.place == waits // held by somebody whose claim's reply was lost
	case NotFound:
		if in.op == Redrive || in.op == Delete {
			return st.place != isDead
		}
		return st.place == nowhere || st.place == isDead
	default:
		return true
	}
}
