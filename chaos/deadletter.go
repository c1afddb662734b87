package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// DeadLetterClient redrives dead letters, or deletes them.
func DeadLetterClient(e *Env, proc int) Run {
	return func(ctx context.Context, b backend.Backend) {
		c := newClient(e, proc, b)
		defer c.close()
		for c.Traits.Supports(backend.Redriving) && !e.ended(ctx) {
			if c.reopen(ctx) {
				c.redriveSome(ctx)
			}
			c.rest(ctx, 300*time.Millisecond+jitter(c.rng, 400*time.Millisecond))
		}
	}
}

const pageOfDead = 100

func (c *client) redriveSome(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, callTime)
	page, _, err := c.q.ListDead(within, "", pageOfDead)
	cancel()
	if err != nil || c.Draining.Load() { // dead letters of the drain stay
		return
	}
	var redrive, remove []message
	for i := range page {
		n, _, _ := recognize(page[i].Body, page[i].Headers, c.Traits)
		m := message{n, page[i].ID}
		if c.rng.IntN(3) > 0 {
			redrive = append(redrive, m)
		} else {
			remove = append(remove, m)
		}
	}
	c.onIDs(ctx, judge.Redrive, redrive, c.q.Redrive)
	c.onIDs(ctx, judge.DeleteDead, remove, c.q.DeleteDead)
}

// CollectDead lists, records and deletes all dead letters. The other clients have to have returned.
func CollectDead(ctx context.Context, e *Env, proc int, b backend.Backend) error {
	c := newClient(e, proc, b)
	defer c.close()
	c.open(ctx)
	if c.q == nil || !c.Traits.Supports(backend.Redriving) {
		return ctx.Err()
	}
	for {
		page, _, err := c.q.ListDead(ctx, "", pageOfDead)
		if err != nil || len(page) == 0 {
			return err
		}
		listed := judge.Call{Op: judge.Listed}
		var ms []message
		for i := range page {
			n, _, whole := recognize(page[i].Body, page[i].Headers, c.Traits)
			ms = append(ms, message{n, page[i].ID})
			listed.Items = append(listed.Items, judge.Item{N: n, Out: judge.OK, Altered: !whole, Attempt: page[i].Attempts})
		}
		c.call(ctx, callTime, listed, func(context.Context, *judge.Call) error { return nil })
		c.onIDs(ctx, judge.DeleteDead, ms, c.q.DeleteDead)
	}
}
