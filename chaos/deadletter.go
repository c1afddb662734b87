package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// DeadLetterClient redrives dead letters, or deletes them.
func DeadLetterClient(e *Env, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		c := &deadLetterClient{newClient(e, proc, b)}
		defer c.close()
		for c.Traits.Supports(backend.Redriving) && ctx.Err() == nil && !e.Draining.Load() && !e.Stopping.Load() {
			c.reopen(ctx)
			if c.q != nil {
				c.round(ctx)
			}
			c.rest(ctx, 300*time.Millisecond+jitter(c.dice, 400*time.Millisecond))
		}
	}
}

type deadLetterClient struct{ *client }

const pageOfDead = 100

func (c *deadLetterClient) round(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, callTime)
	page, _, err := c.q.ListDead(within, "", pageOfDead)
	cancel()
	if err != nil || c.Draining.Load() { // dead letters of the drain stay
		return
	}
	var redrive, remove []named
	for i := range page {
		n, _ := c.read(&page[i])
		m := named{n, page[i].ID}
		if c.dice.IntN(3) > 0 {
			redrive = append(redrive, m)
		} else {
			remove = append(remove, m)
		}
	}
	c.onIDs(ctx, judge.Redrive, redrive, c.q.Redrive)
	c.onIDs(ctx, judge.DeleteDead, remove, c.q.DeleteDead)
}

func (c *deadLetterClient) read(l *backend.DeadLetter) (n uint32, whole bool) {
	return recognize(l.Body, l.Headers, c.Traits.Supports(backend.Headers))
}

// CollectDead lists and deletes all dead letters when the clients have returned, and records them.
func CollectDead(ctx context.Context, e *Env, proc int, b backend.Backend) error {
	c := &deadLetterClient{newClient(e, proc, b)}
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
		var ms []named
		for i := range page {
			n, whole := c.read(&page[i])
			ms = append(ms, named{n, page[i].ID})
			listed.Items = append(listed.Items, judge.Item{N: n, Out: judge.OK, Altered: !whole, Attempt: page[i].Attempts})
		}
		c.call(ctx, callTime, listed, func(context.Context, *judge.Call) error { return nil })
		c.onIDs(ctx, judge.DeleteDead, ms, c.q.DeleteDead)
	}
}

// named is a message and its id.
type named struct {
	n  uint32
	id string
}

// onIDs records a call on messages by their ids.
func (c *client) onIDs(ctx context.Context, op judge.Op, ms []named, do func(context.Context, []string) []error) {
	call := judge.Call{Op: op, Items: each(ms, func(m named) judge.Item { return judge.Item{N: m.n} })}
	c.batch(ctx, call, func(ctx context.Context) []error { return do(ctx, each(ms, func(m named) string { return m.id })) })
}
