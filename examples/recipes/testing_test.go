package recipes_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

// A review that nobody writes gets five stars after seven days. The test takes milliseconds.
func TestReviewDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		q, err := delayq.New(ctx, "reviews", delayq.InMemory()) // in memory: its clock is the bubble's
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if _, err := q.Push(ctx, []byte("17"), delayq.After(7*24*time.Hour)); err != nil {
			t.Fatal(err)
		}

		start, stars := time.Now(), 0
		err = q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
			stars = 5
			stop()
			return nil
		})
		if err != nil || stars != 5 || time.Since(start) != 7*24*time.Hour {
			t.Errorf("%d stars after %v: %v", stars, time.Since(start), err)
		}
	})
}

// A handler that fails twice is called three times, with the pauses of the policy.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		q, err := delayq.New(ctx, "webhooks", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if _, err := q.Push(ctx, nil); err != nil {
			t.Fatal(err)
		}

		start := time.Now()
		var calls []time.Duration
		err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
			calls = append(calls, time.Since(start))
			if d.Attempt < 3 {
				return errors.New("no connection")
			}
			stop()
			return nil
		}, delayq.Retry(delayq.Delays{time.Minute, time.Hour}))
		if err != nil || len(calls) != 3 || calls[1] != time.Minute || calls[2] != time.Hour+time.Minute {
			t.Errorf("calls at %v: %v", calls, err)
		}
	})
}

// The same with a clock that the test moves by hand.
func TestReviewDefaultsOnAFakeClock(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	clock := clockwork.NewFakeClock()
	q, err := delayq.New(ctx, "reviews", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := q.Push(ctx, []byte("17"), delayq.After(7*24*time.Hour)); err != nil {
		t.Fatal(err)
	}

	handled, consumed := make(chan string, 1), make(chan error, 1)
	go func() {
		consumed <- q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
			handled <- string(d.Body)
			return nil
		})
	}()
	clock.Advance(7*24*time.Hour - time.Second)
	if s, err := q.Stats(ctx); err != nil || s.Scheduled != 1 {
		t.Fatalf("a second before: %+v, %v", s, err)
	}
	clock.Advance(time.Second)
	if order := <-handled; order != "17" {
		t.Errorf("handled %q", order)
	}
	stop()
	if err := <-consumed; err != nil {
		t.Error(err)
	}
}
