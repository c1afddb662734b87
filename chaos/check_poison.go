package chaos

import (
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// Poison is a message that kills whoever handles it, from its push or its redrive to its death.
type Poison struct {
	ID       string `json:"id"`
	Max      int    `json:"max"`           // attempts it is given
	Seen     []int  `json:"seen"`          // attempts as handlers saw them
	Bad      bool   `json:"bad,omitempty"` // it came, or died, with another body or headers
	Dead     bool   `json:"dead"`          // it is a dead letter
	Letters  int    `json:"letters"`       // as how many
	Attempts int    `json:"attempts"`      // that the dead letter counts
	Pushed   int64  `json:"pushed"`        // when
	Start    int64  `json:"start"`         // of this life
	End      int64  `json:"end"`           // when it was seen dead
}

// PoisonMessage returns a message that can be told to be whole. Its number is that of a message with headers.
func PoisonMessage(i int, t backend.Traits) backend.Message {
	n := uint32(7 * (i + 1))
	m := backend.Message{ID: idOf(n), Body: bodyOf(n)}
	if t.Supports(backend.Headers) {
		m.Headers = headersOf(n)
	}
	return m
}

// Tell notes what handlers saw of the poison while it lived, as [PlayRole] recorded it.
func (p *Poison) Tell(calls []Call) {
	for _, c := range calls {
		if c.Err == p.ID && c.Start >= p.Start && c.Start <= p.End {
			p.Seen = append(p.Seen, c.Items[0].Attempt)
			p.Bad = p.Bad || c.Items[0].Bad
		}
	}
}

// Die notes of what is dead what is of this poison.
func (p *Poison) Die(letters []backend.DeadLetter, t backend.Traits) {
	p.Letters = 0
	for i := range letters {
		if l := &letters[i]; l.ID == p.ID {
			_, whole := recognize(l.Body, l.Headers, t.Supports(backend.Headers))
			p.Dead, p.Attempts, p.Bad = true, l.Attempts, p.Bad || !whole
			p.Letters++
		}
	}
}

// Healed is since when the last fault that took replies, connections or workers away is felt no more.
func Healed(ws []Window) time.Time {
	var at int64
	for _, w := range ws {
		if w.Breaks {
			at = max(at, w.End+recovery)
		}
	}
	return time.Unix(0, at)
}

// poison is invariant 9: a message that kills its worker each time is a dead letter after exactly so many attempts, and after as many again
// when it is redriven. While something breaks, an attempt may be one that no handler sees, as where a store counts
// what was on its way to a worker (it lacks ExactAttempts): then handlers see it less often. More often they never do.
func (j *judge) poison() {
	for _, p := range j.h.Poison {
		rising := slices.IsSorted(p.Seen) && len(slices.Compact(slices.Clone(p.Seen))) == len(p.Seen)
		broke := j.h.broke(p.Start, p.End) || j.h.jumped(p.Start, p.End)
		copied := !j.h.Traits.Supports(backend.SingleCopy) && j.h.broke(p.Pushed, p.End)
		switch {
		case !p.Dead:
			j.fail("poison", "%s is no dead letter; handlers saw it as attempts %v", p.ID, p.Seen)
		case p.Bad:
			j.fail("poison", "%s came or died with another body or headers than it was pushed with", p.ID)
		case p.Letters > 1 && !copied:
			j.fail("poison", "%s is %d dead letters", p.ID, p.Letters)
		case p.Letters > 1: // there were as many lives
		case !rising || len(p.Seen) > 0 && p.Seen[len(p.Seen)-1] > p.Max:
			j.fail("poison", "%s was to be tried %d times; handlers saw it as attempts %v", p.ID, p.Max, p.Seen)
		case len(p.Seen) < p.Max && !broke:
			j.fail("poison", "%s was to be tried %d times; handlers saw it as attempts %v, and nothing broke", p.ID, p.Max, p.Seen)
		case p.Attempts <= p.Max && j.h.Traits.Supports(backend.CountingAttempts):
			j.fail("poison", "%s died with %d attempts counted, of %d", p.ID, p.Attempts, p.Max)
		}
	}
}
