package delayq_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// Another worker has the message once the lease of one that ignores its timeout has ended; the
// others never wait.
func TestTimeoutIgnored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const lease = 9 * time.Second
		var log journal
		q := newQueue(t, log.Logger(), delayq.WithLease(lease))
		push(t, q, delayq.ID("17"))
		began := time.Now()
		var mu sync.Mutex
		var attempts []time.Duration
		consume(t, q, 2*time.Hour, func(_ context.Context, d *delayq.Delivery) error {
			mu.Lock()
			attempts = append(attempts, time.Since(began))
			mu.Unlock()
			if d.Attempt == 1 {
				time.Sleep(time.Hour)
			}
			return nil
		}, delayq.Timeout(time.Minute), delayq.Workers(2))
		again := time.Minute + 5*time.Second
		if len(attempts) != 2 || attempts[1] < again || attempts[1] > again+lease {
			t.Errorf("attempts at %v, want the second within a lease after %v", attempts, again)
		}
		wantCounts(t, q, delayq.Stats{})
		log.Want(t, "handler ignores its timeout", "id=17", "settling failed")
	})
}

// secondAttempt consumes a message whose first handler ignores its timeout of a minute: it does first,
// and hangs. It returns how long after the start another worker had the message.
func secondAttempt(t *testing.T, q delayq.Queue, first func(context.Context, *delayq.Delivery)) (again time.Duration) {
	t.Helper()
	began := time.Now()
	consume(t, q, 24*time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
		if d.Attempt > 1 {
			again = time.Since(began)
			return nil
		}
		first(ctx, d)
		time.Sleep(20 * time.Hour) // virtual
		return nil
	}, delayq.Timeout(time.Minute), delayq.Workers(2))
	wantCounts(t, q, delayq.Stats{})
	return again
}

// What a handler that ignores its timeout asked for itself does not keep the message from others.
func TestTimeoutIgnoredAfterAnExtend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const lease = 9 * time.Second
		q := newQueue(t, delayq.WithLease(lease))
		push(t, q)
		again := secondAttempt(t, q, func(ctx context.Context, d *delayq.Delivery) {
			must(t, d.Extend(ctx, 12*time.Hour))
			time.Sleep(time.Minute + 10*time.Second) // virtual
			wantIs(t, d.Extend(context.WithoutCancel(ctx), 12*time.Hour), delayq.ErrLeaseLost)
		})
		if want := time.Minute + 5*time.Second + lease; again != want {
			t.Errorf("the second attempt began after %v, want %v", again, want)
		}
	})
}

// late marks the context of a call that takes a second to reach the store.
type late struct{}

// A handler's Extend that is on its way when the message is given up does not keep it from others, and
// neither does a store that fails at that moment.
func TestTimeoutIgnoredBesideAnExtend(t *testing.T) {
	for name, extend := range map[string]func(s *seam, ctx context.Context, d *delayq.Delivery) error{
		"on its way": func(_ *seam, ctx context.Context, d *delayq.Delivery) error {
			time.Sleep(time.Minute + 4500*time.Millisecond) // virtual; given up after 1m5s
			return d.Extend(context.WithValue(context.WithoutCancel(ctx), late{}, true), 12*time.Hour)
		},
		"the store fails": func(s *seam, ctx context.Context, d *delayq.Delivery) error {
			must(t, d.Extend(ctx, 12*time.Hour))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.before = once("extend")
			return delayq.ErrLeaseLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const lease = 9 * time.Second
				s := newSeam()
				s.before = func(ctx context.Context, _ string) error {
					if ctx.Value(late{}) != nil {
						time.Sleep(time.Second) // virtual
					}
					return nil
				}
				q := newQueue(t, s.option(), delayq.WithLease(lease))
				push(t, q)
				again := secondAttempt(t, q, func(ctx context.Context, d *delayq.Delivery) {
					if err := extend(s, ctx, d); !errors.Is(err, delayq.ErrLeaseLost) {
						t.Errorf("Extend: %v", err)
					}
				})
				if first := time.Minute + 5*time.Second + lease; again < first || again > first+lease/2 {
					t.Errorf("the second attempt began after %v, want soon after %v", again, first)
				}
			})
		})
	}
}

// A handler that ignores its timeout is given up after a call of its own that settles nothing.
func TestTimeoutIgnoredBesideAnAck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const lease = 9 * time.Second
		s := newSeam()
		failed := once("ack")
		s.before = func(ctx context.Context, op string) error {
			err := failed(ctx, op)
			if err != nil {
				time.Sleep(3 * time.Second) // virtual
			}
			return err
		}
		var log journal
		q := newQueue(t, s.option(), log.Logger(), delayq.WithLease(lease))
		push(t, q, delayq.ID("17"))
		again := secondAttempt(t, q, func(ctx context.Context, d *delayq.Delivery) {
			time.Sleep(time.Minute + 4*time.Second) // virtual
			wantIs(t, d.Ack(context.WithoutCancel(ctx)), errStore)
		})
		if last := time.Minute + 10*time.Second + lease; again == 0 || again > last {
			t.Errorf("the second attempt began after %v, want by %v", again, last)
		}
		log.Want(t, "handler ignores its timeout", "id=17")
	})
}

// A handler that ends in time, or just after, is done.
func TestTimeoutKept(t *testing.T) {
	each(t, []time.Duration{0, time.Minute - 1, time.Minute + 1, time.Minute + 6*time.Second}, func(t *testing.T, took time.Duration) {
		q := newQueue(t)
		push(t, q)
		calls := 0
		consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error {
			calls++
			time.Sleep(took)
			return nil
		}, delayq.Timeout(time.Minute))
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
		wantCounts(t, q, delayq.Stats{})
	})
}

func TestMiddleware(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		var calls []string
		layer := func(name string) delayq.Middleware {
			return func(next delayq.Handler) delayq.Handler {
				return func(ctx context.Context, d *delayq.Delivery) error {
					calls = append(calls, name)
					err := next(ctx, d)
					calls = append(calls, name+" after "+err.Error())
					return nil
				}
			}
		}
		inner := func(next delayq.Handler) delayq.Handler {
			return func(ctx context.Context, d *delayq.Delivery) error { return next(ctx, d) }
		}
		consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error {
			calls = append(calls, "handler")
			return errHandler
		}, delayq.Use(layer("a")), delayq.Use(inner, inner))
		if want := []string{"a", "handler", "a after " + errHandler.Error()}; !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
		wantCounts(t, q, delayq.Stats{}) // the middleware's error counts
	})
}

func TestRateLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		const n = 100
		pushMany(t, q, n)
		began := time.Now()
		var at []time.Duration
		consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error {
			at = append(at, time.Since(began))
			return nil
		}, delayq.RateLimit(2, 10))
		if len(at) != n {
			t.Fatalf("%d messages, want %d", len(at), n)
		}
		for i, when := range at {
			if least := time.Duration(max(i-9, 0)) * time.Second / 2; when < least || when > least+time.Millisecond {
				t.Errorf("message %d after %v, want %v", i, when, least)
			}
		}
	})
}

// A limit leaves the other messages to other consumers.
func TestRateLimitLeavesTheRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		pushMany(t, q, 10)
		r := start(t, q, returning(nil), delayq.RateLimit(0.001, 1), delayq.Workers(8))
		time.Sleep(time.Second)
		wantCounts(t, q, delayq.Stats{Ready: 9})
		wantStop(t, q, r, stops["context"], 0)
	})
}
