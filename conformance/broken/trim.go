package broken

import (
	"context"
	"errors"

	"github.com/delayq/delayq/backend"
)

var trimFaults = []Fault{
	{Name: "keeps dead letters beyond the count", Rule: "dead-retention", breaks: func(q *queue) {
		q.onTrim(func(keep *backend.Retention) { keep.MaxCount = 0 })
	}},
	{Name: "keeps one dead letter more than the count", Rule: "dead-retention", breaks: func(q *queue) {
		q.onTrim(func(keep *backend.Retention) {
			if keep.MaxCount > 0 {
				keep.MaxCount++
			}
		})
	}},
	{Name: "keeps dead letters beyond the age", Rule: "dead-retention", breaks: func(q *queue) {
		q.onTrim(func(keep *backend.Retention) { keep.MaxAge = 0 })
	}},
	{Name: "deletes dead letters before their age", Rule: "dead-retention", breaks: func(q *queue) {
		q.onTrim(func(keep *backend.Retention) { keep.MaxAge -= keep.MaxAge / 100 })
	}},
	{Name: "deletes dead letters by their due time", Rule: "dead-retention", breaks: func(q *queue) {
		q.trimDead = func(ctx context.Context, keep backend.Retention) (int, bool, error) {
			letters, _, err := q.Queue.ListDead(ctx, "", 1<<20)
			if err != nil || keep.MaxAge == 0 || len(letters) == 0 || q.clock().Now().Sub(letters[0].Due) < keep.MaxAge {
				return q.Queue.TrimDead(ctx, keep)
			}
			return 1, true, errors.Join(q.Queue.DeleteDead(ctx, []string{letters[0].ID})...)
		}
	}},
	{Name: "deletes the youngest dead letters", Rule: "dead-retention", breaks: func(q *queue) {
		q.trimDead = func(ctx context.Context, keep backend.Retention) (int, bool, error) {
			ids, _, err := q.Queue.ListDeadIDs(ctx, "", 1<<20)
			if err != nil || keep.MaxCount == 0 || len(ids) <= keep.MaxCount {
				return 0, false, err
			}
			gone := ids[keep.MaxCount:]
			return len(gone), false, errors.Join(q.Queue.DeleteDead(ctx, gone)...)
		}
	}},
	{Name: "stops trimming half-way", Rule: "dead-retention", breaks: func(q *queue) {
		q.trimDead = func(ctx context.Context, keep backend.Retention) (int, bool, error) {
			n, _, err := q.Queue.TrimDead(ctx, keep)
			return n, false, err
		}
	}},
	{Name: "does not count what it trims", Rule: "dead-retention", breaks: func(q *queue) {
		q.trimDead = func(ctx context.Context, keep backend.Retention) (int, bool, error) {
			_, more, err := q.Queue.TrimDead(ctx, keep)
			return 0, more, err
		}
	}},
}

func (q *queue) onTrim(change func(*backend.Retention)) {
	q.trimDead = func(ctx context.Context, keep backend.Retention) (int, bool, error) {
		change(&keep)
		return q.Queue.TrimDead(ctx, keep)
	}
}
