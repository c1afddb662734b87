package broken

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

var pageFaults = []Fault{
	{Name: "goes on after the due time of a page's last message", Rule: "peek-ties", wrap: func(q *queue) backend.Queue { return &timePager{q} }},
	{Name: "goes on by the number of dead letters listed", Rule: "dead-pages", wrap: func(q *queue) backend.Queue { return &countPager{q} }},
	{Name: "lists the ids of one page of dead letters", Rule: "redrive-all", wrap: func(q *queue) backend.Queue { return &firstPager{q} }},
	{Name: "lists dead letters by due time", Rule: "dead-pages", wrap: func(q *queue) backend.Queue { return &dueLister{q} }},
	{Name: "lists the ids of dead letters in another order", Rule: "dead-list", wrap: func(q *queue) backend.Queue { return &idLister{q} }},
	{Name: "tells a wrong time of death", Rule: "dead-pages", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Died = l.Due }}
	}},
	{Name: "tells a wrong due time of a dead letter", Rule: "dead-pages", wrap: func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Due = l.Due.Truncate(time.Minute) }}
	}},
	{Name: "tells no due time of a head that is due", Rule: "stats", wrap: func(q *queue) backend.Queue { return &headless{q} }},
}

// timePager has a due time for a cursor.
type timePager struct{ *queue }

func (q *timePager) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	from, _ := strconv.ParseInt(cursor, 10, 64)
	all, _, err := q.Queue.Peek(ctx, "", 1_000_000)
	all = slices.DeleteFunc(all, func(p backend.Pending) bool { return cursor != "" && p.Due.UnixNano() <= from })
	if len(all) <= limit {
		return all, "", err
	}
	return all[:limit], strconv.FormatInt(all[limit-1].Due.UnixNano(), 10), err
}

// countPager has a number for a cursor.
type countPager struct{ *queue }

func (q *countPager) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	from, _ := strconv.Atoi(cursor)
	all, _, err := q.Queue.ListDead(ctx, "", 1_000_000)
	rest := all[min(from, len(all)):]
	if len(rest) <= limit {
		return rest, "", err
	}
	return rest[:limit], strconv.Itoa(from + limit), err
}

func (q *countPager) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

// firstPager ends its first page of ids as if it were the last.
type firstPager struct{ *queue }

func (q *firstPager) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	ids, _, err := q.Queue.ListDeadIDs(ctx, cursor, limit)
	return ids, "", err
}

// dueLister sorts each page.
type dueLister struct{ *queue }

func (q *dueLister) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	page, next, err := q.Queue.ListDead(ctx, cursor, limit)
	slices.SortFunc(page, func(a, b backend.DeadLetter) int { return a.Due.Compare(b.Due) })
	return page, next, err
}

// idLister reverses each page of ids.
type idLister struct{ *queue }

func (q *idLister) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	ids, next, err := q.Queue.ListDeadIDs(ctx, cursor, limit)
	slices.Reverse(ids)
	return ids, next, err
}

type headless struct{ *queue }

func (q *headless) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := q.Queue.Stats(ctx)
	if s.Ready > 0 {
		s.HeadDue = time.Time{}
	}
	return s, err
}
