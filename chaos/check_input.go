package chaos

import "slices"

// Mistake is what a call with bad input did wrong, and the answers that it may get: names of sentinel errors, or that it is not known.
type Mistake struct {
	What string   `json:"what"`
	Want []string `json:"want"`
	Got  string   `json:"got"`
}

// input is invariant 15: bad input gets the typed error for it. That it changes nothing is for all other rules to see: what it would have
// pushed has a number, and would be unexpected.
func (j *judge) input() {
	for i := range j.h.Calls {
		c := &j.h.Calls[i]
		if c.Op != Wrong || c.End == 0 {
			continue
		}
		j.counts.Wrong++
		if !slices.Contains(c.Wrong.Want, c.Wrong.Got) && !j.toldOfFirst(c) {
			j.fail("input", "%s was answered with %q at %s, not with any of %q: %s", c.Wrong.What, c.Wrong.Got, clockOf(c.End), c.Wrong.Want, c.Err)
		}
	}
}

// toldOfFirst excuses a second ack that the client itself had to repeat: it tells of the first one, which succeeded.
func (j *judge) toldOfFirst(c *Call) bool {
	return c.Wrong.Got == "ok" && slices.Contains(c.Wrong.Want, "lease-lost") && j.h.broke(c.Start, c.end())
}
