package judge

import (
	"slices"

	"github.com/delayq/delayq/backend"
)

// replaces reports whether the history has pushes with Replace, or with AfterInFlight.
func (h *History) replaces(inFlight bool) bool {
	return slices.ContainsFunc(h.Calls, func(c Call) bool {
		return c.Op == Push && slices.ContainsFunc(c.Items, func(it Item) bool { return it.Replace && (it.AfterInFlight || !inFlight) })
	})
}

// Idle returns the names of the rules that had nothing to look at in a history, and so prove nothing.
// calm says that the test run went on for [CalmAtLeast] with nothing broken.
func (v Verdict) Idle(h *History, calm bool) []string {
	counted := slices.ContainsFunc(h.Calls, func(c Call) bool { return c.Op == Stats })
	paused := len(h.Windows) == 0 && slices.ContainsFunc(h.Calls, func(c Call) bool { return c.Op == PauseAll }) // faults may leave each unsure
	var names []string
	for _, r := range []struct {
		name  string
		meant bool
		saw   int
	}{
		{"order", h.Traits.Supports(backend.Ordering), v.Counts.Ordered},
		{"wake-up", calm, v.Counts.Woken},
		{"accounting", counted, v.Counts.Counted},
		{"paused", paused, v.Counts.Paused},
		{"input", true, v.Counts.Misused},
		{"replaced", h.replaces(false), v.Counts.Replaced},
		{"replaced in flight", h.replaces(true), v.Counts.ReplacedInFlight},
	} {
		if r.meant && r.saw == 0 {
			names = append(names, r.name)
		}
	}
	return names
}
