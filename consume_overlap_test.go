package delayq_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
)

// slowAcks are acks that take a second; nothing else takes any time.
func slowAcks(ctx context.Context, op string) error {
	if op == "ack" {
		return seconds(ctx, op)
	}
	return nil
}

// Two workers have 8 messages on their way back, and each is held by one more.
func TestWorkersGoOnWhileTheyAck(t *testing.T) {
	type test struct {
		opts []delayq.ConsumeOption
		want int32
	}
	cases(t, map[string]test{
		"ahead":      {nil, 10},
		"not ahead":  {[]delayq.ConsumeOption{delayq.Prefetch(0)}, 2},
		"one worker": {[]delayq.ConsumeOption{delayq.Workers(1)}, 1},
	}, func(t *testing.T, c test) {
		q := newQueue(t, newFar(slowAcks).option())
		for range 50 {
			push(t, q)
		}
		var handled atomic.Int32
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			handled.Add(1)
			return nil
		}, append([]delayq.ConsumeOption{delayq.Workers(2)}, c.opts...)...)
		synctest.Wait()
		if n := handled.Load(); n != c.want {
			t.Errorf("%d messages handled before the first ack is back, want %d", n, c.want)
		}
		time.Sleep(time.Minute)
		must(t, r.end())
		wantCounts(t, q, delayq.Stats{})
	})
}

func TestStopWaitsForAcks(t *testing.T) {
	cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		f := newFar(slowAcks)
		q, witness := newQueue(t, f.option()), newQueue(t, delayq.WithBackend(f.Backend))
		for range 6 {
			push(t, q)
		}
		r := start(t, q, func(context.Context, *delayq.Delivery) error { return nil }, delayq.Workers(2))
		synctest.Wait()
		wantCounts(t, witness, delayq.Stats{InFlight: 6})
		stop(t, q, r)
		must(t, <-r.done)
		wantCounts(t, witness, delayq.Stats{})
	})
}
