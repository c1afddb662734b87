package delayq

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/delayq/delayq/backend"
)

// RateLimit sets how many messages a second Consume takes on average, more than 0, and how many at once after a time with
// fewer, 1 to [MaxBatch]: to spare what the handlers call. There is no limit by default. It holds for this Consume, not for other
// processes, and what is not taken stays with the store.
func RateLimit(perSecond float64, burst int) ConsumeOption {
	return func(o *consumeOptions) error {
		if !(perSecond > 0) || math.IsInf(perSecond, 1) {
			return backend.Invalid("RateLimit", perSecond, "a finite number of messages a second, more than 0")
		}
		o.rate = rate.NewLimiter(rate.Limit(perSecond), burst)
		return within("RateLimit burst", burst, 1, MaxBatch)
	}
}

// allowed waits until the rate limit lets a message pass, and returns how many of n it does; 0 when ctx has ended.
func (c *consumer) allowed(ctx context.Context, n int) int {
	if c.rate == nil {
		return n
	}
	for ctx.Err() == nil {
		tokens := c.rate.TokensAt(c.clock.Now())
		if tokens >= 1 {
			return min(n, int(tokens))
		}
		missing := (1 - tokens) / float64(c.rate.Limit()) // seconds
		c.pause(ctx, time.Duration(min(missing*1e9, float64(backend.MaxDelay)))+1)
	}
	return 0
}

// spend counts messages that were taken.
func (c *consumer) spend(n int) {
	if c.rate != nil {
		c.rate.AllowN(c.clock.Now(), n)
	}
}
