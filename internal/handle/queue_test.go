package handle

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// Close ends Receives at once. It waits for the claim under way, whose messages are given back.
func TestCloseDuringAClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		closes := 0
		s := &store{reply: func(_ int, c *Claim) error {
			time.Sleep(2 * time.Second) // of the bubble: the claim takes as long
			c.Deliveries = deliveries(0, 1)
			return nil
		}}
		f := open(t, s)
		f.onClose = func(q *Queue) {
			if closes++; q != f.Queue {
				t.Error("another handle")
			}
		}
		got := f.receive(t.Context(), 1)
		began := time.Now()
		ended := make(chan time.Duration, 1)
		go func() {
			if r := <-got; !errors.Is(r.err, backend.ErrClosed) {
				t.Errorf("the Receive returned %v", r)
			}
			ended <- time.Since(began)
		}()
		if err := errors.Join(f.Close(), f.Close()); err != nil || time.Since(began) != 2*time.Second || closes != 1 {
			t.Errorf("%v after %v; told %d times", err, time.Since(began), closes)
		}
		if at := <-ended; at != 0 {
			t.Errorf("the Receive returned after %v", at)
		}
		equal(t, "given back", s.returned(), []string{"0 true"})
		if n := f.hub.Handles(); n != 0 {
			t.Errorf("%d handles", n)
		}
	})
}

// Close waits for three seconds for a store that does not reply, for many handles at the same time.
// When it replies at last, its error is nobody's.
func TestCloseOfAStoreThatStalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hub, release := &Hub{Poll: poll}, make(chan struct{})
		all := make(map[*Queue]<-chan received)
		for range 3 {
			f := openOn(t, hub, &store{reply: func(int, *Claim) error {
				<-release
				return errors.New("broken")
			}})
			all[f.Queue] = f.receive(t.Context(), 1)
		}
		began := time.Now()
		CloseAll(maps.Keys(all))
		if took := time.Since(began); took != closeWithin || hub.Handles() != 0 {
			t.Errorf("Close took %v; %d handles", took, hub.Handles())
		}
		close(release)
		for _, got := range all {
			if r := <-got; !errors.Is(r.err, backend.ErrClosed) {
				t.Errorf("got %v", r)
			}
		}
	})
}

// Receives that have not yet noticed the end get it from the fetcher, and not the error of the last
// claim.
func TestLastClaimFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, &store{reply: func(int, *Claim) error {
			time.Sleep(time.Second) // of the bubble: the claim takes as long
			return errors.New("broken")
		}})
		w := &waiter{limit: 1, lease: time.Minute, got: make(chan received, 1)}
		if err := f.enter(w); err != nil {
			t.Fatal(err)
		}
		f.Start()
		after(0)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if r := <-w.got; !errors.Is(r.err, backend.ErrClosed) {
			t.Errorf("got %v", r)
		}
	})
}

// A closed handle neither receives nor starts a fetcher.
func TestStartAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := open(t, new(store))
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		f.Start()
		if r := <-f.receive(t.Context(), 1); !errors.Is(r.err, backend.ErrClosed) {
			t.Errorf("got %v", r)
		}
		if n := f.hub.Handles(); n != 0 || len(f.store.claims()) != 0 {
			t.Errorf("%d handles, claims at %v", n, f.store.claims())
		}
	})
}

// calls are all methods of a handle but Receive and Close, with n arguments where they take many.
func calls(q *Queue, n int) map[string]func(context.Context) []error {
	ls, list := make([]backend.Lease, n), make([]string, n)
	one := func(err error) []error { return []error{err} }
	return map[string]func(context.Context) []error{
		"Schedule":   func(ctx context.Context) []error { return q.Schedule(ctx, make([]backend.Message, n)) },
		"Ack":        func(ctx context.Context) []error { return q.Ack(ctx, ls) },
		"Nack":       func(ctx context.Context) []error { return q.Nack(ctx, make([]backend.Return, n)) },
		"Dead":       func(ctx context.Context) []error { return q.Dead(ctx, make([]backend.DeadLetterRequest, n)) },
		"Cancel":     func(ctx context.Context) []error { return q.Cancel(ctx, list) },
		"Reschedule": func(ctx context.Context) []error { return q.Reschedule(ctx, make([]backend.Move, n)) },
		"Redrive":    func(ctx context.Context) []error { return q.Redrive(ctx, list) },
		"DeleteDead": func(ctx context.Context) []error { return q.DeleteDead(ctx, list) },
		"Extend": func(ctx context.Context) []error {
			ends, errs := q.Extend(ctx, ls, time.Minute)
			if len(ends) != n {
				errs = append(errs, errors.New("a wrong number of ends"))
			}
			return errs
		},
		"Get": func(ctx context.Context) []error {
			infos, errs := q.Get(ctx, list)
			if len(infos) != n {
				errs = append(errs, errors.New("a wrong number of messages"))
			}
			return errs
		},
		"TrimDead":    func(ctx context.Context) []error { _, _, err := q.TrimDead(ctx, backend.Retention{}); return one(err) },
		"ListDead":    func(ctx context.Context) []error { _, _, err := q.ListDead(ctx, "", 1); return one(err) },
		"ListDeadIDs": func(ctx context.Context) []error { _, _, err := q.ListDeadIDs(ctx, "", 1); return one(err) },
		"Stats":       func(ctx context.Context) []error { _, err := q.Stats(ctx); return one(err) },
		"Peek":        func(ctx context.Context) []error { _, _, err := q.Peek(ctx, "", 1); return one(err) },
		"Purge":       func(ctx context.Context) []error { _, err := q.Purge(ctx); return one(err) },
		"PauseAll":    func(ctx context.Context) []error { return one(q.PauseAll(ctx, backend.Pause{})) },
		"ResumeAll":   func(ctx context.Context) []error { return one(q.ResumeAll(ctx)) },
	}
}

// A handle that is closed, or a context that has ended, keeps a call from the store, whose messages
// would panic here. So does a batch of nothing.
func TestCallsThatDoNotReachTheStore(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	alive, closed := New(Source{}, new(Hub), nil, nil), New(Source{}, new(Hub), nil, nil)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		q    *Queue
		ctx  context.Context //nolint:containedctx // of a table
		want error
	}{{"closed", closed, t.Context(), backend.ErrClosed}, {"ended", alive, ended, context.Canceled}, {"closed and ended", closed, ended, backend.ErrClosed}} {
		for name, call := range calls(tt.q, 2) {
			errs := call(tt.ctx)
			for _, err := range errs {
				if !errors.Is(err, tt.want) {
					t.Errorf("%s, %s: %v", tt.name, name, errs)
				}
			}
			if len(errs) == 0 {
				t.Errorf("%s, %s: no error", tt.name, name)
			}
		}
	}
	for name, call := range calls(alive, 0) {
		switch name {
		case "TrimDead", "ListDead", "ListDeadIDs", "Stats", "Peek", "Purge", "PauseAll", "ResumeAll": // take no batch
			continue
		}
		if errs := call(t.Context()); len(errs) != 0 {
			t.Errorf("%s of nothing: %v", name, errs)
		}
	}
}

// The methods of an open handle are those of its messages, which lack everything here.
func TestCallsReachTheStore(t *testing.T) {
	t.Parallel()
	q := New(Source{Messages: backend.Unsupported{}}, new(Hub), nil, nil)
	for name, call := range calls(q, 1) {
		if errs := call(t.Context()); len(errs) != 1 || !errors.Is(errs[0], backend.ErrUnsupported) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
