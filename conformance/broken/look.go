package broken

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var lookFaults = []Fault{
	{Name: "takes the messages that it shows, and gives them back", Rule: "peek", breaks: func(q *queue) {
		q.peek = func(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
			ds, _ := q.now(limit, time.Hour)
			page, next, err := q.Queue.Peek(ctx, cursor, limit)
			for _, d := range ds {
				page = append([]backend.Pending{pending(d)}, page...)
				q.Queue.Nack(ctx, []backend.Return{{Lease: d.Lease()}})
			}
			return page[:min(limit, len(page))], next, err
		}
	}},
	{Name: "shows messages in flight", Rule: "peek", breaks: func(q *queue) {
		var last backend.Delivery
		q.onDelivery(func(d *backend.Delivery) { last = *d })
		q.peek = func(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
			page, next, err := q.Queue.Peek(ctx, cursor, limit)
			q.mu.Lock()
			defer q.mu.Unlock()
			if next == "" && len(page) < limit && last.ID != "" {
				page = append(page, pending(last))
			}
			return page, next, err
		}
	}},
	{Name: "shows no attempts", Rule: "peek", breaks: func(q *queue) {
		q.onPending(func(p *backend.Pending) { p.Attempts = 0 })
	}},
	{Name: "shows the windows of the messages that it lists", Rule: "peek", breaks: func(q *queue) {
		q.onPending(func(p *backend.Pending) {
			ms, _ := q.Queue.Get(context.Background(), []string{p.ID})
			p.UniqueUntil = ms[0].UniqueUntil
		})
	}},
	{Name: "finds its page by counting", Rule: "peek-pages", breaks: func(q *queue) {
		q.peek = func(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
			all, _, err := q.Queue.Peek(ctx, "", everything)
			page, next := counted(all, cursor, limit)
			return page, next, err
		}
	}},
	{Name: "purges waiting messages and leaves those in flight", Rule: "purge", breaks: func(q *queue) {
		q.purge = func(ctx context.Context) (int64, error) {
			s, err := q.Queue.Stats(ctx)
			ps, _, err2 := q.Queue.Peek(ctx, "", everything)
			for _, p := range ps {
				q.Queue.Cancel(ctx, []string{p.ID})
			}
			ids, _, err3 := q.Queue.ListDeadIDs(ctx, "", everything)
			q.Queue.DeleteDead(ctx, ids)
			return s.Scheduled + s.Ready + s.InFlight + s.Dead, errors.Join(err, err2, err3)
		}
	}},
	{Name: "purges without the dead letters", Rule: "purge", breaks: func(q *queue) {
		q.purge = func(ctx context.Context) (int64, error) {
			ls, _, err := q.Queue.ListDead(ctx, "", everything)
			n, err2 := q.Queue.Purge(ctx)
			for _, l := range ls {
				q.Queue.Schedule(ctx, []backend.Message{{ID: l.ID, Body: l.Body, Headers: l.Headers, Delay: year}})
			}
			return n, errors.Join(err, err2)
		}
	}},
	{Name: "does not count dead letters that it purges", Rule: "purge", breaks: func(q *queue) {
		q.purge = func(ctx context.Context) (int64, error) {
			s, err := q.Queue.Stats(ctx)
			n, err2 := q.Queue.Purge(ctx)
			return n - s.Dead, errors.Join(err, err2)
		}
	}},
	{Name: "counts before it purges", Rule: "purge-race", breaks: func(q *queue) {
		q.purge = func(ctx context.Context) (int64, error) {
			s, err := q.Queue.Stats(ctx)
			for range 50 { // so that a message is pushed or acknowledged meanwhile
				if now, _ := q.Queue.Stats(ctx); s == (backend.Stats{Activity: s.Activity}) || now != s {
					break
				}
				<-time.After(100 * time.Microsecond)
			}
			_, err2 := q.Queue.Purge(ctx)
			return s.Scheduled + s.Ready + s.InFlight + s.Dead, errors.Join(err, err2)
		}
	}},
	{Name: "gives leases from before a purge again", Rule: "purge-and-reuse", breaks: func(q *queue) {
		given := make(map[backend.Token]backend.Token) // the store's, by a number that starts at 1 after a purge
		q.onDelivery(func(d *backend.Delivery) {
			number := backend.Token{Lo: uint64(len(given) + 1)}
			given[number], d.Token = d.Token, number
		})
		q.purge = func(ctx context.Context) (int64, error) {
			q.mu.Lock()
			clear(given)
			q.mu.Unlock()
			return q.Queue.Purge(ctx)
		}
		token := func(l *backend.Lease) { l.Token = given[l.Token] }
		q.onAck(token)
		q.onExtend(token)
		q.onNack(func(r *backend.Return) { token(&r.Lease) })
		q.onDead(func(r *backend.DeadLetterRequest) { token(&r.Lease) })
	}},
	{Name: "keeps no ids taken after a purge", Rule: "purge-and-reuse", breaks: func(q *queue) {
		var purged atomic.Bool
		q.purge = func(ctx context.Context) (int64, error) {
			purged.Store(true)
			return q.Queue.Purge(ctx)
		}
		q.onPush(func(m *backend.Message) {
			if purged.Load() {
				m.UniqueFor = 0
			}
		})
	}},
	{Name: "closes when it is purged", Rule: "purge-goes-on", breaks: func(q *queue) {
		q.purge = func(ctx context.Context) (int64, error) {
			n, err := q.Queue.Purge(ctx)
			return n, errors.Join(err, q.Queue.Close())
		}
	}},
}

func pending(d backend.Delivery) backend.Pending {
	return backend.Pending{ID: d.ID, Body: d.Body, Headers: d.Headers, Due: d.Due}
}
