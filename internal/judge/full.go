package judge

import (
	"strings"

	"github.com/delayq/delayq/backend"
)

// full: a store that accepts no more messages still hands out those it has, and accepts what settles
// them.
func (c *checker) full() {
	for i := range c.h.Calls {
		call := &c.h.Calls[i]
		if call.Op == Receive && strings.Contains(call.Err, backend.ErrFull.Error()) {
			c.fail("full", "a full store refused to hand out: %s", call.Err)
			return
		}
		for _, it := range call.Items {
			if it.Out == Full && call.Op != Push && call.Op != Redrive {
				c.fail("full", "a full store refused the %v of message %d", call.Op, it.N)
				return
			}
		}
	}
}
