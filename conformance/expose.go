package conformance

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// The optional interfaces of a translator are types of their own, so that it can have some and lack
// the others.

type translatedCancel struct{ *translator }

func (t translatedCancel) Cancel(ctx context.Context, names []string) []error {
	return t.cancel.Cancel(ctx, each(names, t.id))
}

type translatedMove struct{ *translator }

func (t translatedMove) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return t.move.Reschedule(ctx, each(ms, func(m backend.Move) backend.Move {
		m.ID = t.id(m.ID)
		return m
	}))
}

type translatedDead struct{ *translator }

func (t translatedDead) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	ls, next, err := t.dead.ListDead(ctx, cursor, limit)
	for i, l := range ls {
		ls[i].ID = t.name(l.ID, l.Body)
	}
	return ls, next, err
}

func (t translatedDead) Redrive(ctx context.Context, names []string) []error {
	return t.dead.Redrive(ctx, each(names, t.id))
}

func (t translatedDead) DeleteDead(ctx context.Context, names []string) []error {
	return t.dead.DeleteDead(ctx, each(names, t.id))
}

// The optional interfaces, as bits.
const (
	cancels = 1 << iota
	moves
	counts
	buries
)

func (t *translator) has() (bits int) {
	for bit, has := range map[int]bool{
		cancels: t.cancel != nil, moves: t.move != nil, counts: t.inspect != nil, buries: t.dead != nil,
	} {
		if has {
			bits |= bit
		}
	}
	return bits
}

func (t *translator) exposed() backend.Queue {
	return withOnly(t.has(), t, translatedCancel{t}, translatedMove{t}, t.inspect, translatedDead{t})
}

// behind is a queue behind a translator. The interfaces below would double the combinations with each that is added; what only shows
// and empties is asked of the translator itself, by peeker and purger.
type behind interface {
	backend.Queue
	translator() *translator
}

func (t *translator) translator() *translator { return t }

func peeker(q backend.Queue) (backend.Peeker, bool) {
	n, ok := q.(behind)
	if !ok {
		p, ok := q.(backend.Peeker)
		return p, ok
	}
	return translatedPeek{n.translator()}, n.translator().peek != nil
}

func purger(q backend.Queue) (backend.Purger, bool) {
	n, ok := q.(behind)
	if !ok {
		p, ok := q.(backend.Purger)
		return p, ok
	}
	return n.translator().purge, n.translator().purge != nil
}

type translatedPeek struct{ *translator }

func (t translatedPeek) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	ps, next, err := t.peek.Peek(ctx, cursor, limit)
	for i, p := range ps {
		ps[i].ID = t.name(p.ID, p.Body)
	}
	return ps, next, err
}

// withOnly returns the queue with those optional interfaces and no others. A type assertion asks for
// methods, which only a type has: each combination needs one.
func withOnly(bits int, q behind, c backend.Canceler, r backend.Rescheduler, i backend.Inspector, d backend.DeadLetters) backend.Queue {
	switch bits {
	case cancels:
		return struct {
			behind
			backend.Canceler
		}{q, c}
	case moves:
		return struct {
			behind
			backend.Rescheduler
		}{q, r}
	case counts:
		return struct {
			behind
			backend.Inspector
		}{q, i}
	case buries:
		return struct {
			behind
			backend.DeadLetters
		}{q, d}
	case cancels | moves:
		return struct {
			behind
			backend.Canceler
			backend.Rescheduler
		}{q, c, r}
	case cancels | counts:
		return struct {
			behind
			backend.Canceler
			backend.Inspector
		}{q, c, i}
	case cancels | buries:
		return struct {
			behind
			backend.Canceler
			backend.DeadLetters
		}{q, c, d}
	case moves | counts:
		return struct {
			behind
			backend.Rescheduler
			backend.Inspector
		}{q, r, i}
	case moves | buries:
		return struct {
			behind
			backend.Rescheduler
			backend.DeadLetters
		}{q, r, d}
	case counts | buries:
		return struct {
			behind
			backend.Inspector
			backend.DeadLetters
		}{q, i, d}
	case cancels | moves | counts:
		return struct {
			behind
			backend.Canceler
			backend.Rescheduler
			backend.Inspector
		}{q, c, r, i}
	case cancels | moves | buries:
		return struct {
			behind
			backend.Canceler
			backend.Rescheduler
			backend.DeadLetters
		}{q, c, r, d}
	case cancels | counts | buries:
		return struct {
			behind
			backend.Canceler
			backend.Inspector
			backend.DeadLetters
		}{q, c, i, d}
	case moves | counts | buries:
		return struct {
			behind
			backend.Rescheduler
			backend.Inspector
			backend.DeadLetters
		}{q, r, i, d}
	case cancels | moves | counts | buries:
		return struct {
			behind
			backend.Canceler
			backend.Rescheduler
			backend.Inspector
			backend.DeadLetters
		}{q, c, r, i, d}
	default:
		return q
	}
}
