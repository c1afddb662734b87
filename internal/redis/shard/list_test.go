package shard_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// TestCursorOfBefore lists a page of a queue, splits it, and goes on where the page ended.
func TestCursorOfBefore(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, _ redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		q := open(t, openAll(1))
		const n = 10
		redistest.Must(t, q.Schedule(ctx, ids(0, n))...)
		for left := n; left > 0; {
			ds, err := q.Receive(ctx, n, time.Minute)
			redistest.Must(t, err)
			for _, d := range ds {
				redistest.Must(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: "test"}})...)
			}
			left -= len(ds)
		}
		later := ids(n, n)
		for i := range later {
			later[i].Delay = time.Hour
		}
		redistest.Must(t, q.Schedule(ctx, later)...)
		waiting, cursor, err := q.Peek(ctx, "", 4)
		redistest.Must(t, err)
		dead, deadCursor, err := q.ListDead(ctx, "", 4)
		redistest.Must(t, err)
		if cursor == "" || deadCursor == "" {
			t.Fatal("a page is all that there is")
		}
		b := openAll(16)
		q = open(t, b)
		got := rest(t, waiting, cursor, func(p backend.Pending) string { return p.ID }, func(cursor string) ([]backend.Pending, string, error) {
			return q.Peek(ctx, cursor, 4)
		})
		got = append(got, rest(t, dead, deadCursor, func(d backend.DeadLetter) string { return d.ID }, func(cursor string) ([]backend.DeadLetter, string, error) {
			return q.ListDead(ctx, cursor, 4)
		})...)
		slices.Sort(got)
		if all := len(got); all != 2*n || len(slices.Compact(got)) != 2*n {
			t.Errorf("listed %d messages, want %d: %v", all, 2*n, got)
		}
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// rest returns the ids of a page and of all that follow.
func rest[T any](t *testing.T, page []T, cursor string, id func(T) string, next func(cursor string) ([]T, string, error)) (ids []string) {
	t.Helper()
	for {
		for _, item := range page {
			ids = append(ids, id(item))
		}
		if cursor == "" {
			return ids
		}
		var err error
		page, cursor, err = next(cursor)
		redistest.Must(t, err)
	}
}
