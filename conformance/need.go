package conformance

import "github.com/delayq/delayq/backend"

// A need is a claim without which a check says nothing.
type need struct {
	claim string
	met   func(*trial) bool
}

var (
	cancelling = need{"cancelling", func(t *trial) bool { _, ok := t.q.(backend.Canceler); return ok }}
	moving     = need{"rescheduling", func(t *trial) bool { _, ok := t.q.(backend.Rescheduler); return ok }}
	counting   = need{"counting messages", func(t *trial) bool { _, ok := t.q.(backend.Inspector); return ok }}
	redriving  = need{"listing dead letters", func(t *trial) bool { _, ok := t.q.(backend.DeadLetters); return ok }}
	peeking    = need{"peeking", func(t *trial) bool { _, ok := peeker(t.q); return ok }}
	purging    = need{"purging", func(t *trial) bool { _, ok := purger(t.q); return ok }}
	ordering   = need{"order by due time", func(t *trial) bool { return !t.traits.Unordered }}
	ownIDs     = need{"the pusher's ids", func(t *trial) bool { return !t.traits.StoreMakesIDs }}
	deduping   = need{"deduplication by id", func(t *trial) bool { return !t.traits.KeepsDuplicates }}
	newHeaders = need{"new headers at a nack (NackHeaders)", func(t *trial) bool { return !t.traits.NoHeaders && !t.traits.FixedHeaders }}
	windows    = need{"ids that stay taken (UniqueFor)", func(t *trial) bool { return !t.traits.NoUniqueFor }}
	attempts   = need{"counting attempts", func(t *trial) bool { return !t.traits.UncountedAttempts }}
	exactly    = need{"attempts that rise by hand-outs alone", func(t *trial) bool { return !t.traits.RecountsAttempts }}
	limiting   = need{"a limit of a queue", func(t *trial) bool { return t.Limited != nil }}
	oneCopy    = need{"messages that are moved in one step", func(t *trial) bool { return !t.traits.CopiesMessages }}
)

// missing names the first claim that the backend does not make.
func (t *trial) missing(needs []need) string {
	for _, n := range needs {
		if !n.met(t) {
			return t.traits.Name + " does not claim " + n.claim
		}
	}
	return ""
}
