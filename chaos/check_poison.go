package chaos

import "slices"

// Poison is a message that kills whoever handles it.
type Poison struct {
	ID       string `json:"id"`
	Max      int    `json:"max"`  // attempts it is given
	Seen     []int  `json:"seen"` // attempts as handlers saw them
	Dead     bool   `json:"dead"`
	Attempts int    `json:"attempts"` // that the dead letter counts
	Start    int64  `json:"start"`
	End      int64  `json:"end"`
}

// poison is invariant 9: a message that kills its worker each time is a dead letter after exactly so many attempts. Attempts that no handler
// saw are those that something broken took away.
func (j *judge) poison() {
	for _, p := range j.h.Poison {
		rising := slices.IsSorted(p.Seen) && len(slices.Compact(slices.Clone(p.Seen))) == len(p.Seen)
		switch {
		case !p.Dead:
			j.fail("poison", "%s is no dead letter; handlers saw it as attempts %v", p.ID, p.Seen)
		case !rising || len(p.Seen) > 0 && p.Seen[len(p.Seen)-1] > p.Max:
			j.fail("poison", "%s was to be tried %d times; handlers saw it as attempts %v", p.ID, p.Max, p.Seen)
		case len(p.Seen) < p.Max && !j.h.broke(p.Start, p.End):
			j.fail("poison", "%s was to be tried %d times; handlers saw it as attempts %v, and nothing broke", p.ID, p.Max, p.Seen)
		case p.Attempts <= p.Max && !j.h.Traits.UncountedAttempts:
			j.fail("poison", "%s died with %d attempts counted, of %d", p.ID, p.Attempts, p.Max)
		}
	}
}
