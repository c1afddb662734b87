package broken

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

var lookFaults = []Fault{
	{"takes what it shows, and gives it back", "peek", func(q *queue) backend.Queue { return &handler{q} }},
	{"shows messages in flight", "peek", func(q *queue) backend.Queue { return &gossip{queue: q} }},
	{"shows no attempts", "peek", func(q *queue) backend.Queue { return &forgiving{q} }},
	{"finds its page by counting", "peek-pages", func(q *queue) backend.Queue { return &counter{q} }},
	{"purges what waits and leaves what is in flight", "purge", func(q *queue) backend.Queue { return &sweeper{q} }},
	{"purges without the dead letters", "purge", func(q *queue) backend.Queue { return &reviver{q} }},
	{"closes when it is purged", "purge-goes-on", func(q *queue) backend.Queue { return &ruin{q} }},
}

// handler looks by receiving.
type handler struct{ *queue }

func (q *handler) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	ds, _ := q.now(limit, time.Hour)
	page, next, err := q.whole.Peek(ctx, cursor, limit)
	for _, d := range ds {
		page = append([]backend.Pending{{ID: d.ID, Body: d.Body, Headers: d.Headers, Due: d.Due}}, page...)
		q.Nack(ctx, []backend.Return{{Lease: d.Lease()}})
	}
	return page[:min(limit, len(page))], next, err
}

// gossip shows what was handed out last.
type gossip struct {
	*queue
	mu   sync.Mutex
	last backend.Delivery
}

func (q *gossip) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.last = *d
	})
}

func (q *gossip) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	page, next, err := q.whole.Peek(ctx, cursor, limit)
	q.mu.Lock()
	defer q.mu.Unlock()
	if d := q.last; next == "" && len(page) < limit && d.ID != "" {
		page = append(page, backend.Pending{ID: d.ID, Body: d.Body, Headers: d.Headers, Due: d.Due})
	}
	return page, next, err
}

type forgiving struct{ *queue }

func (q *forgiving) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	page, next, err := q.whole.Peek(ctx, cursor, limit)
	for i := range page {
		page[i].Attempts = 0
	}
	return page, next, err
}

// counter has a number for a cursor.
type counter struct{ *queue }

func (q *counter) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	from, _ := strconv.Atoi(cursor)
	all, _, err := q.whole.Peek(ctx, "", 10_000)
	rest := all[min(from, len(all)):]
	if len(rest) <= limit {
		return rest, "", err
	}
	return rest[:limit], strconv.Itoa(from + limit), err
}

// sweeper empties a queue by what it can see.
type sweeper struct{ *queue }

func (q *sweeper) Purge(ctx context.Context) (int64, error) {
	s, err := q.Stats(ctx)
	ps, _, err2 := q.whole.Peek(ctx, "", 10_000)
	for _, p := range ps {
		q.Cancel(ctx, []string{p.ID})
	}
	ls, _, err3 := q.ListDead(ctx, "", 10_000)
	for _, l := range ls {
		q.DeleteDead(ctx, []string{l.ID})
	}
	return s.Scheduled + s.Ready + s.InFlight + s.Dead, errors.Join(err, err2, err3)
}

// reviver puts back the dead letters that it should have deleted.
type reviver struct{ *queue }

func (q *reviver) Purge(ctx context.Context) (int64, error) {
	ls, _, err := q.ListDead(ctx, "", 10_000)
	n, err2 := q.whole.Purge(ctx)
	for _, l := range ls {
		q.Schedule(ctx, []backend.Message{{ID: l.ID, Body: l.Body, Headers: l.Headers, Delay: 1000 * time.Hour}})
	}
	return n, errors.Join(err, err2)
}

// ruin is of no use after a purge.
type ruin struct{ *queue }

func (q *ruin) Purge(ctx context.Context) (int64, error) {
	n, err := q.whole.Purge(ctx)
	return n, errors.Join(err, q.Close())
}
