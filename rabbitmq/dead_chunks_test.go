package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// newDead makes n dead letters, letter-0 and so on.
func newDead(ctx context.Context, t *testing.T, q *queue, n int) {
	t.Helper()
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i].ID = fmt.Sprint("letter-", i)
	}
	if err := errors.Join(q.Schedule(ctx, ms)...); err != nil {
		t.Fatal(err)
	}
	for died := 0; died < n; {
		ds, err := q.Receive(ctx, n, time.Hour)
		rs := make([]backend.DeadLetterRequest, len(ds))
		for i := range ds {
			rs[i].Lease = ds[i].Lease()
		}
		if err = errors.Join(append(q.Dead(ctx, rs), err)...); err != nil {
			t.Fatal(err)
		}
		died += len(ds)
	}
}

// TestDeadLettersBeyondAChunk lists, redrives and trims more dead letters than are read together.
func TestDeadLettersBeyondAChunk(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	q := openNew(ctx, t, testenv.SharedRabbitMQ(t).URL())
	const n, kept = 25, 5
	q.b.chunk = 10
	newDead(ctx, t, q, n)
	ids, _, err := q.ListDeadIDs(ctx, "", 2*n)
	if slices.Sort(ids); err != nil || len(slices.Compact(ids)) != n {
		t.Fatalf("%d dead letters are listed, want %d: %v", len(ids), n, err)
	}
	if err := errors.Join(q.Redrive(ctx, []string{"letter-7", "letter-24"})...); err != nil {
		t.Error(err)
	}
	if removed, _, err := q.TrimDead(ctx, backend.Retention{MaxCount: kept}); removed != n-2-kept || err != nil {
		t.Errorf("%d letters were deleted, want %d: %v", removed, n-2-kept, err)
	}
	if ids, _, err = q.ListDeadIDs(ctx, "", n); err != nil || len(ids) != kept {
		t.Errorf("%q are left, want %d: %v", ids, kept, err)
	}
}
