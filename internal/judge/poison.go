package judge

import (
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// Poison is a message that kills every worker that handles it, from its push or its redrive until it
// is a dead letter.
type Poison struct {
	ID       string `json:"id"`
	Max      int    `json:"max"`               // attempts that it is given
	Seen     []int  `json:"seen"`              // attempts that handlers saw
	Altered  bool   `json:"altered,omitempty"` // body or headers were not as pushed
	Dead     bool   `json:"dead"`
	Letters  int    `json:"letters"`  // dead letters with this id
	Attempts int    `json:"attempts"` // that the dead letter counts
	Pushed   int64  `json:"pushed"`   // when
	Start    int64  `json:"start"`    // since its push or redrive
	End      int64  `json:"end"`      // when it was seen dead
}

// poison: a message that kills its worker each time is a dead letter after exactly so many attempts,
// and after as many again when it is redriven. While something breaks, an attempt may be one that no
// handler sees: handlers then see fewer attempts than they are given.
func (c *checker) poison() {
	for _, p := range c.h.Poison {
		rising := slices.IsSorted(p.Seen) && len(slices.Compact(slices.Clone(p.Seen))) == len(p.Seen)
		broke := c.h.broke(p.Start, p.End) || c.h.jumped(p.Start, p.End)
		copied := !c.h.Traits.Supports(backend.SingleCopy) && c.h.broke(p.Pushed, p.End)
		switch {
		case !p.Dead:
			c.fail("poison", "%s is no dead letter; handlers saw attempts %v", p.ID, p.Seen)
		case p.Altered:
			c.fail("poison", "%s came or died with another body or headers than it was pushed with", p.ID)
		case p.Letters > 1 && !copied:
			c.fail("poison", "%s is %d dead letters", p.ID, p.Letters)
		case p.Letters > 1: // each copy has attempts of its own
		case !rising || len(p.Seen) > 0 && p.Seen[len(p.Seen)-1] > p.Max:
			c.fail("poison", "%s had %d attempts; handlers saw attempts %v", p.ID, p.Max, p.Seen)
		case len(p.Seen) < p.Max && !broke:
			c.fail("poison", "%s had %d attempts; handlers saw attempts %v, and nothing broke", p.ID, p.Max, p.Seen)
		case p.Attempts <= p.Max && c.h.Traits.Supports(backend.CountingAttempts):
			c.fail("poison", "%s died with %d attempts counted, of %d", p.ID, p.Attempts, p.Max)
		}
	}
}

// Healed is since when no fault is felt that took replies, connections or workers away.
func Healed(ws []Window) time.Time {
	var at int64
	for _, w := range ws {
		if w.Breaks {
			at = max(at, w.End+recovery)
		}
	}
	return time.Unix(0, at)
}
