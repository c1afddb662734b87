package delayq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// The clock that a user gives drives the renewal, too. It may jump past the lease, as when the
// machine slept.
func TestLeaseOnAFakeClock(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	clock := clockwork.NewFakeClock()
	q := newQueue(t, delayq.WithClock(clock), delayq.WithLease(lease))
	push(t, q)
	held, cause, again := make(chan *delayq.Delivery), make(chan error, 1), make(chan struct{})
	r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
		if d.Attempt > 1 {
			close(again)
			return nil
		}
		held <- d
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	})
	d := <-held
	must(t, clock.BlockUntilContext(t.Context(), 1)) // the renewal's ticker
	for range 12 {
		clock.Advance(lease / 3)
		want := clock.Now().Add(lease)
		eventually(t, "the lease is renewed", func() bool { return d.LeaseUntil().Equal(want) })
	}
	clock.Advance(lease)
	if err := <-cause; !errors.Is(err, delayq.ErrLeaseLost) {
		t.Errorf("context ended with %v, want ErrLeaseLost", err)
	}
	<-again
	must(t, r.end())
	wantCounts(t, q, delayq.Stats{})
}

// A store that cannot be reached cannot report that a lease is lost, but gives the message to
// another worker.
func TestLostLeaseStopsTheHandler(t *testing.T) {
	const lease = 9 * time.Second
	type test struct {
		result func(context.Context) error
		logged string
	}
	queuetest.Cases(t, map[string]test{
		"handler fails":    {context.Cause, "handler lost its lease"},
		"handler succeeds": {func(context.Context) error { return nil }, "settling failed"},
	}, func(t *testing.T, tt test) {
		var log journal
		s := newSeam()
		s.before = failing("extend")
		q := newQueue(t, s.option(), log.Logger(), delayq.WithLease(lease))
		push(t, q)
		began := time.Now()
		attempts := 0
		consume(t, q, time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			if attempts++; d.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, delayq.ErrLeaseLost) || time.Since(began) != lease {
				t.Errorf("context ended with %v after %v, want ErrLeaseLost after %v", cause, time.Since(began), lease)
			}
			return tt.result(ctx)
		})
		if attempts != 2 {
			t.Errorf("%d attempts, want 2", attempts)
		}
		log.Want(t, "renewing a lease failed", tt.logged)
		wantCounts(t, q, delayq.Stats{})
	})
}
