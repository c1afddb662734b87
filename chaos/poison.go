package chaos

import (
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// PoisonMessage returns a message that kills its workers. It has headers, where the store keeps any.
func PoisonMessage(i int, t backend.Traits) backend.Message {
	n := uint32(7 * (i + 1))
	m := backend.Message{ID: idOf(n), Body: bodyOf(n)}
	if t.Supports(backend.Headers) {
		m.Headers = headersOf(n)
	}
	return m
}

// AddHandled adds what handlers recorded of a poison message while it lived.
func AddHandled(p *judge.Poison, calls []judge.Call) {
	for _, c := range calls {
		if c.Err == p.ID && c.Start >= p.Start && c.Start <= p.End {
			p.Seen = append(p.Seen, c.Items[0].Attempt)
			p.Altered = p.Altered || c.Items[0].Altered
		}
	}
}

// SetDead sets what the dead letters tell of a poison message.
func SetDead(p *judge.Poison, letters []backend.DeadLetter, t backend.Traits) {
	p.Letters = 0
	for i := range letters {
		if l := &letters[i]; l.ID == p.ID {
			_, whole := recognize(l.Body, l.Headers, t.Supports(backend.Headers))
			p.Dead, p.Attempts, p.Altered = true, l.Attempts, p.Altered || !whole
			p.Letters++
		}
	}
}
