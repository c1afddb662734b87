package memory

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// tb is the common part of testing.TB and rapid.TB.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// open returns a queue on a clock that stands still until it is advanced.
func open(t testing.TB, opts ...Option) (*queue, *clockwork.FakeClock) {
	t.Helper()
	clock := clockwork.NewFakeClockAt(epoch)
	return openOn(t, New(opts...), clock), clock
}

// openOn opens another handle on the queue; a nil clock is the real one.
func openOn(t testing.TB, b *Backend, clock clockwork.Clock) *queue {
	t.Helper()
	q, err := b.Open(context.Background(), "q", backend.Options{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q.(*queue)
}

// push schedules a message and returns the outcome.
func push(q *queue, id string, delay time.Duration) error {
	return one(q.Schedule(context.Background(), []backend.Message{{ID: id, Body: []byte("body of " + id), Delay: delay}}))
}

func mustPush(t tb, q *queue, id string, delay time.Duration) {
	t.Helper()
	must(t, push(q, id, delay))
}

// mustTake receives the messages that are due now; it never waits.
func mustTake(t tb, q *queue, limit int, lease time.Duration) []backend.Delivery {
	t.Helper()
	ds, err := q.Receive(context.Background(), limit, lease)
	must(t, err)
	return ds
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func mustAll(t tb, errs []error) {
	t.Helper()
	for _, err := range errs {
		must(t, err)
	}
}

func one(errs []error) error {
	if errs == nil {
		return nil
	}
	return errs[0]
}

func leasesOf(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}

type received struct {
	ds  []backend.Delivery
	err error
}

// receive starts a Receive and returns its future result. The Receive is asleep or done when
// receive returns.
func receive(ctx context.Context, t testing.TB, q *queue) <-chan received {
	t.Helper()
	got := make(chan received, 1)
	before := sleeping(q.store)
	go func() {
		ds, err := q.Receive(ctx, 1, time.Minute)
		got <- received{ds, err}
	}()
	eventually(t, "it sleeps", func() bool { return sleeping(q.store) > before || len(got) > 0 })
	return got
}

func sleeping(s *store) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for z := s.sleep.first; z != nil; z = z.next {
		n++
	}
	return n
}

const patience = 20 * time.Second

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", patience, what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// mustGet waits for a Receive to return this message.
func mustGet(t testing.TB, got <-chan received, id string) backend.Delivery {
	t.Helper()
	r := mustReturn(t, got)
	if r.err != nil || len(r.ds) != 1 || r.ds[0].ID != id {
		t.Fatalf("want message %s, got %v", id, r)
	}
	return r.ds[0]
}

func mustReturn(t testing.TB, got <-chan received) received {
	t.Helper()
	select {
	case r := <-got:
		return r
	case <-time.After(patience):
		t.Fatalf("Receive did not return in %v", patience)
		return received{}
	}
}
