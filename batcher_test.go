package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// newFar returns a seam behind round trips, so that calls are batched.
func newFar(trip func(ctx context.Context, op string) error) *seam {
	s := newSeam()
	s.traits = lackingOnly()
	s.before = func(ctx context.Context, op string) error {
		if trip != nil && (op == "schedule" || op == "ack" || op == "nack") {
			return trip(ctx, op)
		}
		return nil
	}
	return s
}

// seconds is a trip of one second, in virtual time.
func seconds(ctx context.Context, _ string) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// together runs f many times at once and returns how long that takes.
func together(n int, f func(i int)) time.Duration {
	start := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
	return time.Since(start)
}

// wantShared checks that calls of an operation were batched, at least so many of them in one call.
func (s *seam) wantShared(t *testing.T, op string, calls, most int, took time.Duration) {
	t.Helper()
	if n, largest := s.calls(op); n > calls/10 || largest < most || took > 30*time.Second {
		t.Errorf("%d calls of %s took %d round trips of up to %d and %v", calls, op, n, largest, took)
	}
}

func TestConcurrentCallsShareRoundTrips(t *testing.T) {
	const calls = 200
	bubble(t, func(t *testing.T) {
		f := newFar(seconds)
		q := newQueue(t, f.option(), delayq.WithLease(time.Hour))
		took := together(calls, func(i int) {
			_, err := q.Push(t.Context(), []byte{byte(i)})
			mustNot(t, err)
		})
		f.wantShared(t, "schedule", calls, calls/4, took) // pushes are sent before the first call returns
		ds, err := q.ReceiveBatch(t.Context(), calls)
		must(t, err)
		f.wantShared(t, "nack", calls, calls*9/10, together(calls, func(i int) { mustNot(t, ds[i].Nack(t.Context(), 0)) }))
		ds, err = q.ReceiveBatch(t.Context(), calls)
		must(t, err)
		f.wantShared(t, "ack", calls, calls*9/10, together(calls, func(i int) { mustNot(t, ds[i].Ack(t.Context())) }))
		wantCounts(t, q, delayq.Stats{})
	})
}

// mustNot is must for goroutines other than the test's.
func mustNot(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

func TestSharedRoundTripKeepsErrorsApart(t *testing.T) {
	const calls = 100
	bubble(t, func(t *testing.T) {
		q := newQueue(t, newFar(seconds).option())
		var stored, duplicate atomic.Int64
		together(calls, func(i int) {
			id := fmt.Sprint("id-", i/2) // each is pushed twice
			got, err := q.Push(t.Context(), nil, delayq.ID(id))
			switch {
			case err == nil && got == id:
				stored.Add(1)
			case errors.Is(err, delayq.ErrDuplicate):
				duplicate.Add(1)
			default:
				t.Errorf("push of %s: %q, %v", id, got, err)
			}
		})
		if s, d := stored.Load(), duplicate.Load(); s != calls/2 || d != calls/2 {
			t.Errorf("%d stored, %d duplicates, want half and half", s, d)
		}
		ds, err := q.ReceiveBatch(t.Context(), calls)
		must(t, err)
		var acked atomic.Int64
		together(calls, func(i int) { // each is acked twice
			if err := ds[i/2].Ack(t.Context()); err == nil {
				acked.Add(1)
			} else if !errors.Is(err, delayq.ErrSettled) {
				t.Error(err)
			}
		})
		if n := acked.Load(); n != calls/2 {
			t.Errorf("%d acks succeeded, want %d", n, calls/2)
		}
	})
}

// A caller may write to its body and headers once its push has returned.
func TestBodyMayChangeAfterPushGaveUp(t *testing.T) {
	const calls = 50
	bubble(t, func(t *testing.T) {
		q := newQueue(t, newFar(seconds).option(), delayq.WithLease(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var gaveUp atomic.Int64
		together(calls, func(i int) {
			ctx := ctx
			if i%2 == 0 {
				ctx = t.Context() // a caller that stays keeps the batch going
			}
			body := []byte("whole")
			headers := map[string]string{"k": "whole"}
			if _, err := q.Push(ctx, body, func(m *delayq.Message) error { m.Headers = headers; return nil }); err != nil {
				wantDeadline(t, err)
				gaveUp.Add(1)
			}
			copy(body, "spoil")
			headers["k"] = "spoil"
		})
		if gaveUp.Load() == 0 {
			t.Error("no caller gave up")
		}
		ds, err := q.ReceiveBatch(t.Context(), calls)
		must(t, err)
		if len(ds) != calls {
			t.Errorf("%d messages are there, want %d", len(ds), calls)
		}
		for _, d := range ds {
			if string(d.Body) != "whole" || d.Headers["k"] != "whole" {
				t.Fatalf("a message of body %q and headers %v", d.Body, d.Headers)
			}
		}
	})
}

func wantDeadline(t *testing.T, err error) {
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a deadline", err)
	}
}

func TestCloseEndsWaitingPushes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t, newFar(seconds).option())
		go func() {
			time.Sleep(time.Second / 2)
			mustNot(t, q.Close())
		}()
		together(100, func(int) {
			if _, err := q.Push(t.Context(), nil); !errors.Is(err, delayq.ErrClosed) {
				t.Errorf("push: %v, want %v", err, delayq.ErrClosed)
			}
		})
	})
}

// Callers give up at any moment. Each push that returned nil is in the store once, and each message
// is acked once.
func TestCallsWhileOthersGiveUp(t *testing.T) {
	t.Parallel()
	q := newQueue(t, newFar(bumpy).option(), delayq.WithLease(time.Hour))
	outcomes := pushImpatiently(t, q, 32, 40)
	there := drain(t, q)
	for id, err := range outcomes {
		switch {
		case err == nil && there[id] != 1:
			t.Errorf("message %s was pushed and came %d times", id, there[id])
		case err != nil && !errors.Is(err, context.Canceled):
			t.Error(err)
		}
	}
	if n := stats(t, q).InFlight; n != 0 {
		t.Errorf("%d messages are in flight, though all are settled", n)
	}
}

// bumpy is a trip of up to a millisecond or so, in real time.
func bumpy(ctx context.Context, _ string) error {
	time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
	return ctx.Err()
}

func pushImpatiently(t *testing.T, q delayq.Queue, goroutines, each int) map[string]error {
	var mu sync.Mutex
	outcomes := make(map[string]error)
	together(goroutines, func(int) {
		for range each {
			impatient(t.Context(), func(ctx context.Context) {
				id, err := q.Push(ctx, []byte("body"))
				mu.Lock()
				defer mu.Unlock()
				outcomes[id] = err
			})
		}
	})
	return outcomes
}

// drain takes and acknowledges the messages that are there, and counts them by id.
func drain(t *testing.T, q delayq.Queue) map[string]int {
	t.Helper()
	there := make(map[string]int)
	for stats(t, q).Ready > 0 {
		ds, err := q.ReceiveBatch(t.Context(), delayq.MaxBatch)
		must(t, err)
		together(len(ds), func(i int) { ackImpatiently(t, ds[i]) })
		for _, d := range ds {
			there[d.ID]++
		}
	}
	return there
}

func ackImpatiently(t *testing.T, d *delayq.Delivery) {
	var err error
	impatient(t.Context(), func(ctx context.Context) { err = d.Ack(ctx) })
	if err == nil {
		return
	}
	if err := d.Ack(t.Context()); err != nil && !errors.Is(err, delayq.ErrLeaseLost) {
		t.Error(err)
	}
}

// impatient ends the context of a third of the calls at any moment.
func impatient(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if rand.IntN(3) == 0 {
		defer time.AfterFunc(time.Duration(rand.IntN(200))*time.Microsecond, cancel).Stop()
	}
	f(ctx)
}

func TestStoreThatMakesIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFar(seconds)
		f.makesIDs, f.traits = true, lackingOnly(backend.OwnIDs)
		q := newQueue(t, f.option())
		ctx := t.Context()
		together(50, func(i int) {
			if id, err := q.Push(ctx, fmt.Append(nil, i)); err != nil || id != fmt.Sprint("made-", i) {
				t.Errorf("push %d: %q, %v", i, id, err)
			}
		})
		id, err := q.Push(ctx, []byte("1"))
		if wantIs(t, err, delayq.ErrDuplicate); id != "" {
			t.Errorf("a refused message has the id %q", id)
		}
		ids, err := q.PushBatch(ctx, []delayq.Message{{Body: []byte("a")}, {Body: []byte("1")}, {Body: []byte("b")}})
		if wantIs(t, err, delayq.ErrDuplicate); !slices.Equal(ids, []string{"made-a", "", "made-b"}) {
			t.Errorf("ids %q", ids)
		}
		_, err = q.Push(ctx, nil, delayq.ID("mine"))
		wantUnsupported(t, err, "pushes with an id")
		_, err = q.PushBatch(ctx, []delayq.Message{{Body: []byte("c")}, {ID: "mine"}})
		wantUnsupported(t, err, "pushes with an id")
		wantCounts(t, q, delayq.Stats{Ready: 52})
	})
}
