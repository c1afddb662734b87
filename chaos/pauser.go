package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Pauser pauses the queue for all workers now and then, with an end or without one, and resumes it.
// Its first pause is surely in force for a while: it has no end, and its call is not cut off.
func Pauser(e *Env, proc int) Run {
	return func(ctx context.Context, b backend.Backend) {
		c := newClient(e, proc, b)
		defer c.close()
		for c.patient = true; c.Traits.Supports(backend.Pausing) && !e.ended(ctx); c.patient = false {
			if c.reopen(ctx) {
				c.pauseAll(ctx)
			}
			c.rest(ctx, jitter(c.rng, maxPause))
			c.resumeAll(ctx)
			c.rest(ctx, time.Second+jitter(c.rng, time.Second))
		}
	}
}

func (c *client) pauseAll(ctx context.Context) {
	var p backend.Pause
	if !c.patient && c.chance(0.5) {
		p.For = jitter(c.rng, maxPause)
	}
	c.call(ctx, callTime, judge.Call{Op: judge.PauseAll, Pause: int64(p.For)}, func(ctx context.Context, _ *judge.Call) error {
		return c.q.PauseAll(ctx, p)
	})
}

// resumeAll tries until it succeeds: otherwise the queue would stay paused.
func (c *client) resumeAll(ctx context.Context) {
	for ctx.Err() == nil {
		c.open(ctx)
		if c.q == nil {
			return
		}
		call := c.call(ctx, callTime, judge.Call{Op: judge.ResumeAll}, func(ctx context.Context, _ *judge.Call) error { return c.q.ResumeAll(ctx) })
		if call.Err == "" {
			return
		}
		c.rest(ctx, 4*shortPause)
	}
}
