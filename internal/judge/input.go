package judge

import "slices"

// Mistake is what a call with bad input did wrong, and the errors that it may get: names of sentinel
// errors, or "unknown".
type Mistake struct {
	What string   `json:"what"`
	Want []string `json:"want"`
	Got  string   `json:"got"`
}

// input: bad input gets the typed error for it. That it changes nothing is for the other rules: what
// it would have pushed has a number, and would be unexpected.
func (c *checker) input() {
	for i := range c.h.Calls {
		call := &c.h.Calls[i]
		if call.Op != Misuse || call.End == 0 {
			continue
		}
		c.counts.Misused++
		m := call.Misuse
		// A second ack that the client itself had to repeat tells of the first one, which succeeded.
		repeated := m.Got == "ok" && slices.Contains(m.Want, "lease-lost") && c.h.broke(call.Start, call.end())
		if !slices.Contains(m.Want, m.Got) && !repeated {
			c.fail("input", "%s returned %q at %s, not any of %q: %s", m.What, m.Got, clockOf(call.End), m.Want, call.Err)
		}
	}
}
