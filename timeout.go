package delayq

import (
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/telemetry"
)

// Timeout sets how long a handler may take for a message, 1 ms to 24 h; there is no limit by default. Then its context ends,
// [context.Cause] is [ErrTimeout], and what it returns is a failure, unless that is nil. A handler that has not returned five
// seconds later loses its lease, so that another worker, or another process, has the message; its own worker stays
// taken until it returns.
func Timeout(d time.Duration) ConsumeOption {
	return func(o *consumeOptions) error {
		o.timeout = d
		if d < time.Millisecond || d > maxTimeout {
			return backend.Invalid("Timeout", d, "1ms to 24h")
		}
		return nil
	}
}

const maxTimeout = 24 * time.Hour

// clockFor arranges what happens to a handler that takes too long.
func (c *consumer) clockFor(d *Delivery) clockwork.Timer {
	if c.timeout == 0 {
		return nil
	}
	return c.clock.AfterFunc(c.timeout, func() { c.timedOut(d) })
}

func (c *consumer) timedOut(d *Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[d]; r != nil {
		r.cancel(ErrTimeout)
		r.timer = c.clock.AfterFunc(obeyWithin, func() { c.forsake(d) })
	}
}

// forsake renews the lease of a message no longer.
func (c *consumer) forsake(d *Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[d]; r != nil && !d.ended() {
		r.forsaken = true
		c.telemetry.Failed(c.handling, telemetry.IgnoredTimeout, 1)
		c.log.Error("delayq: handler ignores its timeout; its message returns when the lease ends", "id", d.ID, "attempt", d.Attempt, "timeout", c.timeout)
	}
}
