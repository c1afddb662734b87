package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/rabbitmq"
)

// kill has messages die, in the order of their numbers.
func kill(ctx context.Context, t *testing.T, q backend.Queue, n int) {
	t.Helper()
	must(t, q.Schedule(ctx, batch("dead", n, 0))...)
	for died := 0; died < n; {
		ds, err := q.Receive(ctx, 500, time.Minute)
		must(t, err)
		bs := make([]backend.Burial, len(ds))
		for i := range ds {
			bs[i] = backend.Burial{Lease: ds[i].Lease(), Reason: "of the test"}
		}
		must(t, q.Dead(ctx, bs)...)
		died += len(ds)
	}
}

// listDead returns the ids of all dead letters, read in pages.
func listDead(ctx context.Context, q backend.Queue, limit int) (ids []string, err error) {
	for cursor := ""; ; {
		page, next, err := q.ListDead(ctx, cursor, limit)
		if err != nil {
			return ids, err
		}
		for _, l := range page {
			ids = append(ids, l.ID)
		}
		if next == "" {
			return ids, nil
		}
		cursor = next
	}
}

// TestManyDeadLetters lists thousands in pages of several sizes, and brings them all back.
func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	const n = 3000
	ctx := deadline(t, patience)
	q := open(t, shared(t))
	kill(ctx, t, q, n)
	for _, limit := range []int{100, 1000, n} {
		began := time.Now()
		ids, err := listDead(ctx, q, limit)
		must(t, err)
		t.Logf("%d dead letters in pages of %d: %v", len(ids), limit, time.Since(began))
		if slices.Sort(ids); len(slices.Compact(ids)) != n {
			t.Errorf("pages of %d: %d dead letters, want %d", limit, len(ids), n)
		}
	}
	ids, err := listDead(ctx, q, n)
	must(t, err)
	began := time.Now()
	must(t, q.Redrive(ctx, ids[:1])...)
	t.Logf("one redriven: %v", time.Since(began))
	for part := range slices.Chunk(ids[1:], 1000) {
		must(t, q.Redrive(ctx, part)...)
	}
	for seen := make(map[string]bool); len(seen) < n; {
		ds, err := q.Receive(ctx, n, time.Minute)
		must(t, err)
		for _, d := range ds {
			seen[d.ID] = true
		}
		ack(ctx, t, q, ds...)
	}
	left, err := listDead(ctx, q, n)
	if must(t, err); len(left) > 0 {
		t.Errorf("%d dead letters are left", len(left))
	}
}

// TestDeadLettersSideBySide lists, redrives and deletes at once, in handles of one connection and
// of two. Each listing that has nothing taken away meanwhile is whole, and each redrive and
// deletion finds what is there.
func TestDeadLettersSideBySide(t *testing.T) {
	t.Parallel()
	const kept, taken = 60, 60
	ctx := deadline(t, patience)
	url := shared(t)
	var handles []backend.Queue
	for range 2 {
		b := rabbitmq.New(url)
		t.Cleanup(func() { must(t, b.Close()) })
		handles = append(handles, openOn(t, b, queueOf(t)), openOn(t, b, queueOf(t)))
	}
	kill(ctx, t, handles[0], kept+taken)
	all, err := listDead(ctx, handles[0], 1000)
	must(t, err)
	stay := all[taken:]
	var over sync.WaitGroup
	for i, q := range handles {
		over.Go(func() {
			for range 15 {
				ids, err := listDead(ctx, q, 1000)
				for _, id := range stay {
					if !slices.Contains(ids, id) {
						err = errors.Join(err, fmt.Errorf("%s is missing among %d", id, len(ids)))
					}
				}
				if err != nil {
					t.Errorf("listing: %v", err)
					return
				}
			}
		})
		over.Go(func() {
			dead := q
			for j := i; j < taken; j += len(handles) {
				do := dead.Redrive
				if j%2 == 1 {
					do = dead.DeleteDead
				}
				if err := do(ctx, all[j:j+1])[0]; err != nil {
					t.Errorf("taking %s: %v", all[j], err)
				}
			}
		})
	}
	over.Wait()
	left, err := listDead(ctx, handles[3], 1000)
	must(t, err)
	if slices.Sort(left); !slices.Equal(left, slices.Sorted(slices.Values(stay))) {
		t.Errorf("%d dead letters are left, want %d", len(left), kept)
	}
	drain(ctx, t, handles[0], taken/2)
}
