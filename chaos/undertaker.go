package chaos

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// Undertaker brings dead letters back, or deletes them.
func Undertaker(s *Stage, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		u := &undertaker{newActor(s, proc, b)}
		defer u.close()
		for u.Traits.Supports(backend.Redriving) && ctx.Err() == nil && !s.Draining.Load() && !s.Stopping.Load() {
			u.reopen(ctx)
			if u.q != nil {
				u.round(ctx)
			}
			u.rest(ctx, 300*time.Millisecond+jitter(u.dice, 400*time.Millisecond))
		}
	}
}

type undertaker struct{ *actor }

const pageOfDead = 100

func (u *undertaker) round(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, callTime)
	page, _, err := u.q.ListDead(within, "", pageOfDead)
	cancel()
	if err != nil {
		return
	}
	var back, gone []named
	for i := range page {
		m := u.read(&page[i])
		if u.dice.IntN(3) > 0 {
			back = append(back, m)
		} else {
			gone = append(gone, m)
		}
	}
	u.do(ctx, Redrive, back, u.q.Redrive)
	u.do(ctx, Delete, gone, u.q.DeleteDead)
}

func (u *undertaker) read(l *backend.DeadLetter) named {
	n, _ := recognize(l.Body, l.Headers, u.Traits.Supports(backend.Headers))
	return named{n, l.ID}
}

func (u *undertaker) do(ctx context.Context, op Op, ms []named, do func(context.Context, []string) []error) {
	if len(ms) == 0 {
		return
	}
	c := Call{Op: op}
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.id
		c.Items = append(c.Items, Item{N: m.n})
	}
	u.call(ctx, callTime, c, func(ctx context.Context, c *Call) error { return sortOut(c, do(ctx, ids)) })
}

// buryAll lists all dead letters at the end of a run and deletes them. What it finds is recorded as seen.
func (u *undertaker) buryAll(ctx context.Context) error {
	for {
		page, _, err := u.q.ListDead(ctx, "", pageOfDead)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		c := Call{Op: Seen}
		var ms []named
		for i := range page {
			m := u.read(&page[i])
			_, whole := recognize(page[i].Body, page[i].Headers, u.Traits.Supports(backend.Headers))
			ms = append(ms, m)
			c.Items = append(c.Items, Item{N: m.n, Out: OK, Bad: !whole, Attempt: page[i].Attempts})
		}
		u.call(ctx, callTime, c, func(context.Context, *Call) error { return nil })
		u.do(ctx, Delete, ms, u.q.DeleteDead)
	}
}

// LastRites lists and deletes what is dead when all actors have left.
func LastRites(ctx context.Context, s *Stage, proc int, b backend.Backend) error {
	u := &undertaker{newActor(s, proc, b)}
	defer u.close()
	u.open(ctx)
	if u.q == nil || !u.Traits.Supports(backend.Redriving) {
		return ctx.Err()
	}
	return u.buryAll(ctx)
}
