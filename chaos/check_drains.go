package chaos

import (
	"strings"

	"github.com/delayq/delayq/backend"
)

// drains belongs to invariant 2: a store that takes nothing more still hands out what it has, and lets go of it.
func (j *judge) drains() {
	for i := range j.h.Calls {
		c := &j.h.Calls[i]
		if c.Op == Take && strings.Contains(c.Err, backend.ErrFull.Error()) {
			j.fail("drains", "a full store refused to hand out: %s", c.Err)
			return
		}
		for _, it := range c.Items {
			if it.Out == Full && c.Op != Push && c.Op != Redrive {
				j.fail("drains", "a full store refused the %v of message %d", c.Op, it.N)
				return
			}
		}
	}
}
