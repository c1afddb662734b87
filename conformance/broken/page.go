package broken

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

var pageFaults = []Fault{
	{"goes on after the due time of a page's last message", "peek-ties", func(q *queue) backend.Queue { return &timePager{q} }},
	{"goes on by the number of dead letters listed", "redrive-all", func(q *queue) backend.Queue { return &countPager{q} }},
	{"lists dead letters by due time", "dead-pages", func(q *queue) backend.Queue { return &dueLister{q} }},
	{"tells a wrong time of death", "dead-pages", func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Died = l.Due }}
	}},
	{"tells a wrong due time of a dead letter", "dead-pages", func(q *queue) backend.Queue {
		return &lister{q, func(l *backend.DeadLetter) { l.Due = l.Due.Truncate(time.Minute) }}
	}},
	{"tells no due time of a head that is due", "stats", func(q *queue) backend.Queue { return &headless{q} }},
}

// timePager has a due time for a cursor.
type timePager struct{ *queue }

func (q *timePager) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	from, _ := strconv.ParseInt(cursor, 10, 64)
	all, _, err := q.whole.Peek(ctx, "", 1_000_000)
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
	all, _, err := q.whole.ListDead(ctx, "", 1_000_000)
	rest := all[min(from, len(all)):]
	if len(rest) <= limit {
		return rest, "", err
	}
	return rest[:limit], strconv.Itoa(from + limit), err
}

// dueLister sorts each page.
type dueLister struct{ *queue }

func (q *dueLister) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	page, next, err := q.whole.ListDead(ctx, cursor, limit)
	slices.SortFunc(page, func(a, b backend.DeadLetter) int { return a.Due.Compare(b.Due) })
	return page, next, err
}

type headless struct{ *queue }

func (q *headless) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := q.whole.Stats(ctx)
	if s.Ready > 0 {
		s.HeadDue = time.Time{}
	}
	return s, err
}
