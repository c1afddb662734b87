package judge

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/delayq/delayq/backend"
)

// linearizable: each message goes from one state to the next at some moment within each call on it.
// porcupine searches for these moments. A message with one push, one delivery and one ack in
// sequence needs no search.
//
// The rule is for stores where an id is one message. A store that copies messages may have two.
func (c *checker) linearizable(m *message) {
	if !c.h.Traits.Supports(backend.SingleCopy) || m.plain() {
		return
	}
	switch {
	case len(m.steps) > brokenSteps && len(c.found) > 0 && c.found[len(c.found)-1].N == m.n:
		return // it is known to be broken, and a search that fails tries everything
	case len(m.steps) > searchSteps:
		c.counts.Undecided++
		return
	}
	c.counts.Linearizable++
	switch porcupine.CheckOperationsTimeout(stateModel, c.operations(m), searchAtMost) {
	case porcupine.Illegal:
		c.fail("linearizable", "went through states that no order of its calls explains")
	case porcupine.Unknown:
		c.counts.Undecided++
	case porcupine.Ok:
	}
}

const (
	searchAtMost = 2 * time.Second
	searchSteps  = 60
	brokenSteps  = 8
)

// plain reports whether a message was pushed, received and acknowledged, and nothing else. Until the
// queue is drained, the ack may be missing.
func (m *message) plain() bool {
	n := len(m.steps)
	if n != 3 && (n != 2 || m.h.Drained) {
		return false
	}
	push, receive, last := m.steps[0], m.steps[1], m.steps[n-1]
	return push.Op == Push && push.Out == OK && push.End > 0 && receive.Op == Receive && receive.end() > push.Start &&
		(n == 2 || last.Op == Ack && last.Out == OK && last.Start > receive.Start && last.Token == receive.Token)
}

type place uint8

const (
	absent place = iota
	waiting
	leased
	dead
)

// state is where a message is. A lease that no worker saw is the same as waiting.
type state struct {
	place   place
	token   backend.Token
	content uint32 // 0 where it is gone

	replaced bool // leased, with the content of a push with AfterInFlight
}

// at is the same message at another place.
func (st state) at(p place) state { return state{place: p, content: st.content} }

// input is an operation of the model: that of a step, the end of a lease, or the end of the test run.
type input struct {
	op    Op
	out   Outcome
	token backend.Token
	shown backend.State // by a Get

	replace bool   // a push with Replace
	held    bool   // with AfterInFlight too
	content uint32 // of a push, a delivery or a Get
	soft    bool   // the store may have undone it
	event   event
}

type event uint8

const (
	aCall event = iota
	leaseEnd
	runEnd
)

func (c *checker) operations(m *message) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(in input, from, to int64) {
		ops = append(ops, porcupine.Operation{Input: in, Call: from, Return: to})
	}
	for _, s := range m.steps {
		to := s.end()
		if s.Out == Unknown {
			to = never
		}
		if s.Op != Receive {
			add(input{op: s.Op, out: s.Out, token: s.Token, shown: s.State, replace: s.Replace, held: s.AfterInFlight, content: s.Content, soft: c.h.undone(s)}, s.Start, to)
		}
	}
	for _, d := range m.deliveries() {
		add(input{op: Receive, out: d.Out, token: d.Token, content: d.Content, soft: c.h.undone(d.step)}, d.claimedSince(m), d.end())
		add(input{event: leaseEnd, token: d.Token}, max(d.ends, d.claimedSince(m)), never)
	}
	if c.h.Drained {
		add(input{event: runEnd}, m.lastSeen()+1, never)
	}
	return ops
}

var stateModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(st, in, _ any) []any { return st.(state).step(in.(input)) },
}).ToModel()

// step returns the states that an operation may lead to, none where it is impossible.
func (st state) step(in input) []any {
	switch {
	case in.event == leaseEnd && st.holds(in.token):
		return []any{st.at(waiting)}
	case in.event == leaseEnd:
		return []any{st}
	case in.event == runEnd:
		return only(st.place == absent, st)
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

func (st state) holds(t backend.Token) bool { return st.place == leased && st.token == t }

func only(can bool, st state) []any {
	if !can {
		return nil
	}
	return []any{st}
}

// after is the state that an operation leads to, where it succeeds.
func (st state) after(in input) (next state, can bool) {
	mine := st.holds(in.token)
	if mine && st.replaced && (in.op == Ack || in.op == Nack || in.op == Dead) {
		return st.at(waiting), true
	}
	switch in.op {
	case Push:
		if st.place == leased && in.held {
			return state{leased, st.token, in.content, true}, true
		}
		return state{place: waiting, content: in.content}, st.place == absent || in.replace && st.place == waiting
	case Receive:
		return state{leased, in.token, st.content, false}, st.place == waiting && st.content == in.content
	case Ack:
		return state{}, mine
	case Nack:
		return st.at(waiting), mine
	case Extend:
		return st, mine
	case Dead:
		return st.at(dead), mine
	case Cancel:
		return state{}, st.place == waiting
	case Reschedule:
		return st, st.place == waiting
	case Redrive:
		return st.at(waiting), st.place == dead
	case DeleteDead:
		return state{}, st.place == dead
	case Listed:
		return st, st.place == dead
	case Get:
		return st, st.shows(in.shown) && st.content == in.content
	default:
		return st, true
	}
}

// shows reports whether Get may show a message as this.
func (st state) shows(shown backend.State) bool {
	switch shown {
	case backend.StateScheduled, backend.StateReady:
		return st.place == waiting
	case backend.StateInFlight:
		return st.place == leased || st.place == waiting // leased by a claim whose reply was lost
	case backend.StateDead:
		return st.place == dead
	default:
		return st.place == absent
	}
}

// refuses reports whether an operation may be refused this way in a state.
func (st state) refuses(in input) bool {
	switch in.out {
	case Duplicate:
		return st.place == dead || st.place != absent && !in.replace
	case LeaseLost:
		return !st.holds(in.token)
	case InFlight:
		return !in.held && (st.place == leased || st.place == waiting) // leased by a claim whose reply was lost
	case NotFound:
		if in.op == Redrive || in.op == DeleteDead {
			return st.place != dead
		}
		if in.op == Get {
			return st.place == absent
		}
		return st.place == absent || st.place == dead
	default:
		return true
	}
}
