package delayq_test

import (
	"context"
	"errors"
	"sync/atomic"
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
	type test struct {
		extend func(op string) func(context.Context, string) error
		lease  time.Duration
		result func(context.Context) error
		logged string
	}
	succeeds := func(context.Context) error { return nil }
	queuetest.Cases(t, map[string]test{
		"handler fails":      {failing, 9 * time.Second, context.Cause, "handler lost its lease"},
		"handler succeeds":   {failing, 9 * time.Second, succeeds, "settling failed"},
		"store hangs":        {hanging, 9 * time.Second, succeeds, "settling failed"},
		"short lease":        {failing, 100 * time.Millisecond, succeeds, "settling failed"},
		"short, store hangs": {hanging, 100 * time.Millisecond, succeeds, "settling failed"},
	}, func(t *testing.T, tt test) {
		var log journal
		s := newSeam()
		s.before = tt.extend("extend")
		q := newQueue(t, s.option(), log.Logger(), delayq.WithLease(tt.lease))
		attempts := 0
		r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
			if attempts++; d.Attempt > 1 {
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, delayq.ErrLeaseLost) || time.Since(began) != tt.lease {
				t.Errorf("context ended with %v after %v, want ErrLeaseLost after %v", cause, time.Since(began), tt.lease)
			}
			return tt.result(ctx)
		})
		time.Sleep(tt.lease/3 + tt.lease/30) // virtual: until just after a renewal
		push(t, q)
		time.Sleep(time.Hour) // virtual
		must(t, r.end())
		if attempts != 2 {
			t.Errorf("%d attempts, want 2", attempts)
		}
		log.Want(t, "renewing a lease failed", tt.logged)
		wantCounts(t, q, delayq.Stats{})
	})
}

// A renewal that hangs delays those of the messages that come meanwhile.
func TestLeaseThatBeginsDuringARenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const lease = 100 * time.Millisecond
		s := newSeam()
		s.before = hanging("extend")
		q := newQueue(t, s.option(), delayq.WithLease(lease))
		var stopped atomic.Int64
		r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
			began := time.Now()
			if d.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			if took := time.Since(began); took != lease {
				t.Errorf("%v: its context ended after %v, want %v", d, took, lease)
			}
			stopped.Add(1)
			return ctx.Err()
		}, delayq.Workers(4))
		push(t, q)
		time.Sleep(lease / 2) // virtual: the renewal of the first is under way
		push(t, q)
		time.Sleep(time.Hour) // virtual
		must(t, r.end())
		if n := stopped.Load(); n != 2 {
			t.Errorf("%d handlers were stopped, want 2", n)
		}
	})
}

// What a handler asked for during a renewal is asked for again. A store that hangs then does not
// keep the other leases from being renewed.
func TestRestoredLeaseDelaysNoRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const workers = 6
		s := newSeam()
		hang := hanging("extend")
		s.before = func(ctx context.Context, op string) error {
			if n, _ := s.calls("extend"); n == 3 {
				return hang(ctx, op)
			}
			return nil
		}
		s.slowReply("extend", 200*time.Millisecond)
		q := newQueue(t, s.option(), delayq.WithLease(time.Second))
		pushMany(t, q, workers)
		var calls atomic.Int64
		consume(t, q, time.Minute, func(ctx context.Context, d *delayq.Delivery) error {
			if calls.Add(1) == 1 {
				time.Sleep(400 * time.Millisecond) // virtual: the first renewal is under way
				must(t, d.Extend(ctx, time.Hour))
			}
			select {
			case <-ctx.Done():
				t.Errorf("a handler's context ended: %v", context.Cause(ctx))
			case <-time.After(10 * time.Second): // virtual
			}
			return nil
		}, delayq.Workers(workers))
		if n := calls.Load(); n != workers {
			t.Errorf("%d calls, want %d", n, workers)
		}
		if n, _ := s.calls("extend"); n <= 3 {
			t.Errorf("%d extends, want the one that hangs and more", n)
		}
		wantCounts(t, q, delayq.Stats{})
	})
}
