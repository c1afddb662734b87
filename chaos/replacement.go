package chaos

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// A replacement is a push of new contents for messages that were pushed before.
type replacement struct {
	messages []backend.Message
	items    []judge.Item
}

func (r *replacement) add(c *client, n, content uint32, afterInFlight bool) {
	m, it := c.contentOf(n, content), judge.Item{N: n, Replace: true, AfterInFlight: afterInFlight, Content: content}
	m.Replace, m.AfterInFlight = true, afterInFlight
	c.setDue(&m, &it)
	r.messages, r.items = append(r.messages, m), append(r.items, it)
}

func (r *replacement) push(ctx context.Context, c *client) {
	c.batch(ctx, judge.Call{Op: judge.Push, Items: r.items}, func(ctx context.Context) []error { return c.q.Schedule(ctx, r.messages) })
}
