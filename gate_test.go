package delayq_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// While a queue is paused its consumers take nothing; the handler that runs finishes, and other
// takers go on.
func TestPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		var handled atomic.Int32
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			time.Sleep(time.Minute)
			handled.Add(1)
			return nil
		}, delayq.Workers(4))
		time.Sleep(time.Second)
		q.Pause()
		q.Pause()
		push(t, q)
		push(t, q, delayq.After(time.Minute))
		time.Sleep(time.Hour)
		if n := handled.Load(); n != 1 {
			t.Errorf("%d messages handled, want the one that was running", n)
		}
		wantCounts(t, q, delayq.Stats{Ready: 2})
		must(t, receive(t, q).Ack(t.Context()))
		q.Resume()
		q.Resume()
		time.Sleep(2 * time.Minute)
		if n := handled.Load(); n != 2 {
			t.Errorf("%d messages handled after Resume, want 2", n)
		}
		must(t, r.end())
		wantCounts(t, q, delayq.Stats{})
	})
}

// A Consume may begin and end in a pause, and Close does not wait for its end.
func TestPausedStop(t *testing.T) {
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		q := newQueue(t)
		q.Pause()
		push(t, q)
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			t.Error("a message came")
			return nil
		})
		time.Sleep(time.Minute)
		wantCounts(t, q, delayq.Stats{Ready: 1})
		stop(t, q, r)
		must(t, <-r.done)
	})
}

// Pausing and resuming all the time loses nothing and spends no attempt.
func TestPauseAllTheTime(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	const n = 3000
	var handled atomic.Int32
	r := start(t, q, func(_ context.Context, d *delayq.Delivery) error {
		if d.Attempt != 1 {
			t.Errorf("attempt %d", d.Attempt)
		}
		handled.Add(1)
		return nil
	}, delayq.Workers(8))
	over := make(chan struct{})
	go func() {
		defer close(over)
		for handled.Load() < n {
			q.Pause()
			time.Sleep(10 * time.Microsecond) // spreads the pauses over all that a consumer does; nothing depends on how long
			q.Resume()
			time.Sleep(100 * time.Microsecond)
		}
	}()
	pushMany(t, q, n)
	<-over
	must(t, r.end())
	if got := handled.Load(); got != n {
		t.Errorf("%d messages handled, want %d", got, n)
	}
	wantCounts(t, q, delayq.Stats{})
}
