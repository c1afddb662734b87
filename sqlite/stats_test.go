package sqlite_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// A countedContext ends when it has been asked a number of times.
type countedContext struct{ left atomic.Int64 }

func (*countedContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*countedContext) Done() <-chan struct{}       { return nil }
func (*countedContext) Value(any) any               { return nil }

func (c *countedContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestGetInterrupted ends the contexts of calls of Get, at each step of one. Each error says so.
func TestGetInterrupted(t *testing.T) {
	q := open(t, newFile(t))
	ids := make([]string, 50)
	failed := 0
	for steps := range 60 {
		limited := new(countedContext)
		limited.left.Store(int64(steps))
		_, errs := q.Get(limited, ids)
		for i, err := range errs {
			if errors.Is(err, context.Canceled) {
				failed++
			} else if !errors.Is(err, backend.ErrNotFound) {
				t.Fatalf("after %d steps, id %d: %v", steps, i, err)
			}
		}
	}
	if failed < 10 {
		t.Fatalf("%d ids were not looked for, want more", failed)
	}
}

// TestStatsInterrupted ends the contexts of calls of Stats, at each step of one. Calls after it see
// what was pushed since.
func TestStatsInterrupted(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	ctx := t.Context()
	failed := 0
	for steps := range 60 {
		limited := new(countedContext)
		limited.left.Store(int64(steps))
		if _, err := q.Stats(limited); err != nil {
			failed++
		}
	}
	if failed < 10 {
		t.Fatalf("%d calls of Stats were interrupted, want more", failed)
	}
	other := open(t, path)
	mustPush(t, other, "new", time.Hour)
	for i := range 10 { // on each connection
		ms, errs := q.Get(ctx, []string{"new"})
		if len(ms) != 1 || errs != nil && errs[0] != nil {
			t.Errorf("read %d: %v, %v", i, ms, errs)
		}
		if st, err := q.Stats(ctx); err != nil || st.Scheduled != 1 {
			t.Errorf("Stats %d: %+v, %v", i, st, err)
		}
	}
}
