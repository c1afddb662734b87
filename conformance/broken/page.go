package broken

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

const everything = 1_000_000 // more than any check stores

var pageFaults = []Fault{
	{Name: "continues after the due time of a page's last message", Rule: "peek-ties", breaks: func(q *queue) {
		q.peek = func(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
			from, _ := strconv.ParseInt(cursor, 10, 64)
			all, _, err := q.Queue.Peek(ctx, "", everything)
			all = slices.DeleteFunc(all, func(p backend.Pending) bool { return cursor != "" && p.Due.UnixNano() <= from })
			if len(all) <= limit {
				return all, "", err
			}
			return all[:limit], strconv.FormatInt(all[limit-1].Due.UnixNano(), 10), err
		}
	}},
	{Name: "continues after the number of dead letters listed", Rule: "dead-pages", breaks: func(q *queue) {
		q.listDead = func(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
			all, _, err := q.Queue.ListDead(ctx, "", everything)
			page, next := counted(all, cursor, limit)
			return page, next, err
		}
		q.listDeadIDs = func(ctx context.Context, cursor string, limit int) ([]string, string, error) {
			return backend.DeadIDs(q.listDead(ctx, cursor, limit))
		}
	}},
	{Name: "lists the ids of one page of dead letters", Rule: "redrive-all", breaks: func(q *queue) {
		q.listDeadIDs = func(ctx context.Context, cursor string, limit int) ([]string, string, error) {
			ids, _, err := q.Queue.ListDeadIDs(ctx, cursor, limit)
			return ids, "", err
		}
	}},
	{Name: "lists dead letters by due time", Rule: "dead-pages", breaks: func(q *queue) {
		q.listDead = func(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
			page, next, err := q.Queue.ListDead(ctx, cursor, limit)
			slices.SortFunc(page, func(a, b backend.DeadLetter) int { return a.Due.Compare(b.Due) })
			return page, next, err
		}
	}},
	{Name: "lists the ids of dead letters in another order", Rule: "dead-list", breaks: func(q *queue) {
		q.listDeadIDs = func(ctx context.Context, cursor string, limit int) ([]string, string, error) {
			ids, next, err := q.Queue.ListDeadIDs(ctx, cursor, limit)
			slices.Reverse(ids)
			return ids, next, err
		}
	}},
	{Name: "shows the leases of dead letters", Rule: "dead-list", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.LeaseUntil = l.Died })
	}},
	{Name: "returns a wrong time of death", Rule: "dead-pages", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.Died = l.Due })
	}},
	{Name: "returns a wrong due time of a dead letter", Rule: "dead-pages", breaks: func(q *queue) {
		q.onDeadLetter(func(l *backend.DeadLetter) { l.Due = l.Due.Truncate(time.Minute) })
	}},
	{Name: "returns no due time of a head that is due", Rule: "stats", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) {
			if s.Ready > 0 {
				s.HeadDue = time.Time{}
			}
		})
	}},
}

// counted returns a page by a cursor that is a number.
func counted[T any](all []T, cursor string, limit int) (page []T, next string) {
	from, _ := strconv.Atoi(cursor)
	rest := all[min(from, len(all)):]
	if len(rest) <= limit {
		return rest, ""
	}
	return rest[:limit], strconv.Itoa(from + limit)
}
