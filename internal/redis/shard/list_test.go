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
		var got []string
		for more := waiting; ; {
			for _, p := range more {
				got = append(got, p.ID)
			}
			if cursor == "" {
				break
			}
			more, cursor, err = q.Peek(ctx, cursor, 4)
			redistest.Must(t, err)
		}
		for more := dead; ; {
			for _, d := range more {
				got = append(got, d.ID)
			}
			if deadCursor == "" {
				break
			}
			more, deadCursor, err = q.ListDead(ctx, deadCursor, 4)
			redistest.Must(t, err)
		}
		slices.Sort(got)
		if all := len(got); all != 2*n || len(slices.Compact(got)) != 2*n {
			t.Errorf("listed %d messages, want %d: %v", all, 2*n, got)
		}
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}
