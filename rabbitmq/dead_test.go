package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// makeDead pushes n messages and makes dead letters of them, in the order of their numbers.
func makeDead(ctx context.Context, t testing.TB, q backend.Queue, n int) {
	t.Helper()
	must(t, q.Schedule(ctx, batch("dead", n, 0))...)
	for died := 0; died < n; {
		ds, err := q.Receive(ctx, 500, time.Minute)
		must(t, err)
		deadLetter(ctx, t, q, ds...)
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

// TestManyDeadLetters lists thousands in pages of several sizes, and redrives all. The broker's
// replies take so long that a round trip for each letter would exceed the deadline.
func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	const n = 3000
	const within, latency = 4 * time.Minute, 100 * time.Millisecond
	direct := vhost(t)
	makeDead(deadline(t, patience), t, open(t, direct, few), n)
	url, far := behindProxy(t, direct)
	q := open(t, url, few)
	if n*latency < within {
		t.Fatal("a round trip for each letter would not exceed the deadline")
	}
	far.Latency(latency)
	ctx := deadline(t, within)
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
	far.Latency(0)
	ctx = deadline(t, patience)
	drain(ctx, t, q, n)
	left, err := listDead(ctx, q, n)
	if must(t, err); len(left) > 0 {
		t.Errorf("%d dead letters are left", len(left))
	}
}

// BenchmarkDeadLetters lists 3,000 dead letters in pages of 100, and redrives one of them.
func BenchmarkDeadLetters(b *testing.B) {
	const n = 3000
	ctx, server := b.Context(), testenv.SharedRabbitMQ(b)
	back := rabbitmq.New(server.VhostURL(server.Vhost(b)))
	defer func() { must(b, back.Close()) }()
	q, err := back.Open(ctx, "dead", quiet())
	must(b, err)
	makeDead(ctx, b, q, n)
	var listing, redriving time.Duration
	for b.Loop() {
		began := time.Now()
		ids, err := listDead(ctx, q, 100)
		must(b, err)
		listing += time.Since(began)
		began = time.Now()
		must(b, q.Redrive(ctx, ids[:1])...)
		redriving += time.Since(began)
	}
	b.ReportMetric(float64(listing.Milliseconds())/float64(b.N), "ms/listing")
	b.ReportMetric(float64(redriving.Milliseconds())/float64(b.N), "ms/redrive")
}

// TestConcurrentDeadLetterCalls lists, redrives and deletes at once, in handles of one connection
// and of two. Each listing has all letters that stay. Each redrive and deletion finds its letter.
func TestConcurrentDeadLetterCalls(t *testing.T) {
	t.Parallel()
	const kept, taken = 60, 60
	ctx := deadline(t, patience)
	url := shared(t)
	var handles []backend.Queue
	for range 2 {
		b := newBackend(t, url)
		handles = append(handles, openOn(t, b, queueOf(t)), openOn(t, b, queueOf(t)))
	}
	makeDead(ctx, t, handles[0], kept+taken)
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
			for j := i; j < taken; j += len(handles) {
				do := q.Redrive
				if j%2 == 1 {
					do = q.DeleteDead
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

// TestRedriveAllOfOneID redrives letters on two pages of the listing. Three of them have one id.
func TestRedriveAllOfOneID(t *testing.T) {
	const n = 600 // more than the library lists at a time
	b := newBackend(t, vhost(t), few)
	ctx := deadline(t, patience)
	q, err := newQueue(t, b, "same-id")
	must(t, err)
	for first := 0; first < n; first += n / 6 {
		ms := make([]delayq.Message, n/6)
		for i := range ms {
			ms[i].ID = fmt.Sprint("m", first+i)
		}
		if first > n/2 {
			ms[0].ID = "m10"
		}
		_, err := q.PushBatch(ctx, ms)
		must(t, err)
		for died := 0; died < len(ms); {
			ds, err := q.ReceiveBatch(ctx, len(ms)-died)
			must(t, err)
			must(t, q.DeadLetterBatch(ctx, ds, "of the test"))
			died += len(ds)
		}
	}
	redriven, err := q.Dead().RedriveAll(ctx)
	must(t, err)
	left, _, err := q.Dead().List(ctx, "", n)
	must(t, err)
	if redriven != n || len(left) > 0 {
		t.Errorf("%d of %d letters were redriven, %d are left", redriven, n, len(left))
	}
}

// TestPagesOfOneID lists letters of one id that died together. Each page comes through the handle
// of another connection, which has to read all of them again.
func TestPagesOfOneID(t *testing.T) {
	const n = 60
	url := vhost(t)
	ctx := deadline(t, patience)
	handles := []backend.Queue{openOn(t, newBackend(t, url, few), "same"), openOn(t, newBackend(t, url, few), "same")}
	for range n {
		must(t, handles[0].Schedule(ctx, message("same", 0))...)
	}
	deadLetter(ctx, t, handles[0], receiveAll(ctx, t, handles[0], n)...)
	listed, cursor := 0, ""
	for page := 0; page == 0 || cursor != ""; page++ {
		ls, next, err := handles[page%2].ListDead(ctx, cursor, 7)
		must(t, err)
		listed, cursor = listed+len(ls), next
	}
	if listed != n {
		t.Errorf("the pages list %d of %d letters", listed, n)
	}
}

// TestTrimSomeOfManyDeadLetters deletes letters by age while more wait than one look reads. The rest
// that was not read must not count twice: the call would wait for letters that do not exist.
func TestTrimSomeOfManyDeadLetters(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n = 600
	q := open(t, shared(t))
	makeDead(deadline(t, patience), t, q, n)
	ctx := deadline(t, 15*time.Second)
	if removed, _, err := q.TrimDead(ctx, backend.Retention{MaxAge: time.Microsecond}); removed != n || err != nil {
		t.Errorf("removed %d letters of %d: %v", removed, n, err)
	}
}
