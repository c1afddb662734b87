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
		for ctx.Err() == nil && !s.Draining.Load() && !s.Stopping.Load() {
			u.reopen(ctx)
			dead, ok := u.q.(backend.DeadLetters)
			if u.q != nil && !ok {
				return
			}
			if ok {
				u.round(ctx, dead)
			}
			u.rest(ctx, 300*time.Millisecond+jitter(u.dice, 400*time.Millisecond))
		}
	}
}

type undertaker struct{ *actor }

const pageOfDead = 100

func (u *undertaker) round(ctx context.Context, dead backend.DeadLetters) {
	within, cancel := context.WithTimeout(ctx, callTime)
	page, _, err := dead.ListDead(within, "", pageOfDead)
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
	u.do(ctx, Redrive, back, dead.Redrive)
	u.do(ctx, Delete, gone, dead.DeleteDead)
}

func (u *undertaker) read(l *backend.DeadLetter) named {
	n, _ := recognize(l.Body, l.Headers, !u.Traits.NoHeaders)
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
func (u *undertaker) buryAll(ctx context.Context, dead backend.DeadLetters) error {
	for {
		page, _, err := dead.ListDead(ctx, "", pageOfDead)
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
			_, whole := recognize(page[i].Body, page[i].Headers, !u.Traits.NoHeaders)
			ms = append(ms, m)
			c.Items = append(c.Items, Item{N: m.n, Out: OK, Bad: !whole, Attempt: page[i].Attempts})
		}
		u.call(ctx, callTime, c, func(context.Context, *Call) error { return nil })
		u.do(ctx, Delete, ms, dead.DeleteDead)
	}
}

// LastRites lists and deletes what is dead when all actors have left.
func LastRites(ctx context.Context, s *Stage, proc int, b backend.Backend) error {
	u := &undertaker{newActor(s, proc, b)}
	defer u.close()
	u.open(ctx)
	dead, ok := u.q.(backend.DeadLetters)
	if !ok {
		return ctx.Err()
	}
	return u.buryAll(ctx, dead)
}
