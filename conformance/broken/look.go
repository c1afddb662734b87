package broken

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

var lookFaults = []Fault{
	{Name: "takes what it shows, and gives it back", Rule: "peek", wrap: func(q *queue) backend.Queue { return &handler{q} }},
	{Name: "shows messages in flight", Rule: "peek", wrap: func(q *queue) backend.Queue { return &gossip{queue: q} }},
	{Name: "shows no attempts", Rule: "peek", wrap: func(q *queue) backend.Queue { return &forgiving{q} }},
	{Name: "finds its page by counting", Rule: "peek-pages", wrap: func(q *queue) backend.Queue { return &counter{q} }},
	{Name: "purges what waits and leaves what is in flight", Rule: "purge", wrap: func(q *queue) backend.Queue { return &sweeper{q} }},
	{Name: "purges without the dead letters", Rule: "purge", wrap: func(q *queue) backend.Queue { return &reviver{q} }},
	{Name: "does not count dead letters that it purges", Rule: "purge", wrap: func(q *queue) backend.Queue { return &undercounter{q} }},
	{Name: "counts before it purges", Rule: "purge-race", wrap: func(q *queue) backend.Queue { return &earlyCounter{q} }},
	{Name: "gives leases from before a purge again", Rule: "purge-and-reuse", wrap: func(q *queue) backend.Queue { return newRenumberer(q) }},
	{Name: "keeps no ids taken after a purge", Rule: "purge-and-reuse", wrap: func(q *queue) backend.Queue { return &windowless{queue: q} }},
	{Name: "closes when it is purged", Rule: "purge-goes-on", wrap: func(q *queue) backend.Queue { return &ruin{q} }},
}

// handler looks by receiving.
type handler struct{ *queue }

func (q *handler) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	ds, _ := q.now(limit, time.Hour)
	page, next, err := q.Queue.Peek(ctx, cursor, limit)
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
	page, next, err := q.Queue.Peek(ctx, cursor, limit)
	q.mu.Lock()
	defer q.mu.Unlock()
	if d := q.last; next == "" && len(page) < limit && d.ID != "" {
		page = append(page, backend.Pending{ID: d.ID, Body: d.Body, Headers: d.Headers, Due: d.Due})
	}
	return page, next, err
}

type forgiving struct{ *queue }

func (q *forgiving) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	page, next, err := q.Queue.Peek(ctx, cursor, limit)
	for i := range page {
		page[i].Attempts = 0
	}
	return page, next, err
}

// counter has a number for a cursor.
type counter struct{ *queue }

func (q *counter) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	from, _ := strconv.Atoi(cursor)
	all, _, err := q.Queue.Peek(ctx, "", 10_000)
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
	ps, _, err2 := q.Queue.Peek(ctx, "", 10_000)
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
	n, err2 := q.Queue.Purge(ctx)
	for _, l := range ls {
		q.Schedule(ctx, []backend.Message{{ID: l.ID, Body: l.Body, Headers: l.Headers, Delay: 1000 * time.Hour}})
	}
	return n, errors.Join(err, err2)
}

// ruin is of no use after a purge.
type ruin struct{ *queue }

func (q *ruin) Purge(ctx context.Context) (int64, error) {
	n, err := q.Queue.Purge(ctx)
	return n, errors.Join(err, q.Close())
}

type undercounter struct{ *queue }

func (q *undercounter) Purge(ctx context.Context) (int64, error) {
	s, err := q.Stats(ctx)
	n, err2 := q.Queue.Purge(ctx)
	return n - s.Dead, errors.Join(err, err2)
}

type earlyCounter struct{ *queue }

func (q *earlyCounter) Purge(ctx context.Context) (int64, error) {
	s, err := q.Stats(ctx)
	for range 50 { // so that something is pushed or acknowledged meanwhile
		if now, _ := q.Stats(ctx); s == (backend.Stats{}) || now != s {
			break
		}
		<-time.After(100 * time.Microsecond)
	}
	_, err2 := q.Queue.Purge(ctx)
	return s.Scheduled + s.Ready + s.InFlight + s.Dead, errors.Join(err, err2)
}

// renumberer numbers leases from one on, after each purge.
type renumberer struct {
	*queue
	mu    sync.Mutex
	given map[backend.Token]backend.Token
}

func newRenumberer(q *queue) *renumberer {
	return &renumberer{queue: q, given: map[backend.Token]backend.Token{}}
}

func (q *renumberer) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		q.mu.Lock()
		defer q.mu.Unlock()
		number := backend.Token{Lo: uint64(len(q.given) + 1)}
		q.given[number], d.Token = d.Token, number
	})
}

func (q *renumberer) Purge(ctx context.Context) (int64, error) {
	q.mu.Lock()
	clear(q.given)
	q.mu.Unlock()
	return q.Queue.Purge(ctx)
}

func (q *renumberer) token(l *backend.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.Token = q.given[l.Token]
}

func (q *renumberer) Ack(ctx context.Context, ls []backend.Lease) []error {
	ls = slices.Clone(ls)
	for i := range ls {
		q.token(&ls[i])
	}
	return q.Queue.Ack(ctx, ls)
}

func (q *renumberer) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ls = slices.Clone(ls)
	for i := range ls {
		q.token(&ls[i])
	}
	return q.Queue.Extend(ctx, ls, lease)
}

func (q *renumberer) Nack(ctx context.Context, rs []backend.Return) []error {
	rs = slices.Clone(rs)
	for i := range rs {
		q.token(&rs[i].Lease)
	}
	return q.Queue.Nack(ctx, rs)
}

func (q *renumberer) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	bs = slices.Clone(bs)
	for i := range bs {
		q.token(&bs[i].Lease)
	}
	return q.Queue.Dead(ctx, bs)
}

type windowless struct {
	*queue
	purged atomic.Bool
}

func (q *windowless) Purge(ctx context.Context) (int64, error) {
	q.purged.Store(true)
	return q.Queue.Purge(ctx)
}

func (q *windowless) Schedule(ctx context.Context, ms []backend.Message) []error {
	if !q.purged.Load() {
		return q.Queue.Schedule(ctx, ms)
	}
	return q.Queue.Schedule(ctx, changed(ms, func(m *backend.Message) { m.UniqueFor = 0 }))
}
