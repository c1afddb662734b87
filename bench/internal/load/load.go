// Package load has the loads that the benchmarks of bench and bench/peers share.
package load

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

const (
	// BodySize is that of all messages, in bytes, as the figures of other queues are given.
	BodySize = 100

	// Workers take messages in all.
	Workers = 32

	// Interval is between two pushes of a plan.
	Interval = 500 * time.Microsecond

	// Pushers are so many because a push that is confirmed may take many intervals.
	Pushers = 64

	// Patience is how long nothing may come before missing messages count as lost.
	Patience = 30 * time.Second
)

// Body is the body of messages that nobody tells apart.
var Body = make([]byte, BodySize)

// Quiet turns the log of a queue off.
var Quiet = delayq.WithLogger(slog.New(slog.DiscardHandler))

// Must ends a benchmark with an error.
func Must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}

// UnlessShort returns the second value in a short run.
func UnlessShort[T any](full, short T) T {
	if testing.Short() {
		return short
	}
	return full
}

// LeastDelay is the least delay of a plan; the greatest is three times as much.
func LeastDelay() time.Duration { return UnlessShort(time.Second, time.Second/10) }

// Plan returns the due times of one turn: message i is to be pushed after i intervals.
func Plan(start time.Time) *Tally {
	r := rand.New(rand.NewPCG(1, 2))
	due := make([]time.Time, UnlessShort(5000, 200))
	for i := range due {
		delay := LeastDelay() + time.Duration(r.Int64N(int64(2*LeastDelay())))
		due[i] = start.Add(time.Duration(i)*Interval + delay)
	}
	return NewTally(due)
}

// Pace calls push for messages 0 to n-1 from many goroutines, one an interval.
func Pace(tb testing.TB, start time.Time, n, goroutines int, push func(i int) error) {
	tb.Helper()
	fromMany(goroutines, func(from int) {
		for i := from; i < n && !tb.Failed(); i += goroutines {
			time.Sleep(time.Until(start.Add(time.Duration(i) * Interval))) // the pace is the load
			if err := push(i); err != nil {
				tb.Error(err)
			}
		}
	})
}

// fromMany calls do in that many goroutines, each with its number, and waits for all.
func fromMany(goroutines int, do func(goroutine int)) {
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// Calls calls do n times from many goroutines, and ends the benchmark when one fails.
func Calls(tb testing.TB, n, goroutines int, do func(goroutine, i int) error) {
	tb.Helper()
	var next atomic.Int64
	fromMany(goroutines, func(goroutine int) {
		for i := int(next.Add(1)) - 1; i < n && !tb.Failed(); i = int(next.Add(1)) - 1 {
			if err := do(goroutine, i); err != nil {
				tb.Error(err)
			}
		}
	})
	if tb.Failed() {
		tb.FailNow()
	}
}

// Push pushes n messages that are due in an hour, a call a message.
func Push(tb testing.TB, q delayq.Queue, n, goroutines int) {
	tb.Helper()
	Calls(tb, n, goroutines, func(int, int) error {
		_, err := q.Push(context.Background(), Body, delayq.After(time.Hour))
		return err
	})
}

// Batches calls push with batches of that size.
func Batches(
	tb testing.TB, ms []delayq.Message, size, goroutines int,
	push func(context.Context, []delayq.Message) error,
) {
	tb.Helper()
	batches := slices.Collect(slices.Chunk(ms, size))
	Calls(tb, len(batches), goroutines, func(_, i int) error { return push(context.Background(), batches[i]) })
}

// PushBatches pushes messages, size of them a call.
func PushBatches(tb testing.TB, q delayq.Queue, ms []delayq.Message, size, goroutines int) {
	tb.Helper()
	Batches(tb, ms, size, goroutines, func(ctx context.Context, batch []delayq.Message) error {
		_, err := q.PushBatch(ctx, batch)
		return err
	})
}

// Consume spreads workers over queues. Its result stops them and waits for them.
func Consume(tb testing.TB, handle func(*delayq.Delivery), qs ...delayq.Queue) (stop func()) {
	tb.Helper()
	return Until(tb, len(qs), func(ctx context.Context, i int) error {
		return qs[i].Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
			handle(d)
			return nil
		}, delayq.Workers(Workers/len(qs)))
	})
}

// Until runs do in goroutines until stop is called, which waits for them and fails with their errors.
func Until(tb testing.TB, goroutines int, do func(ctx context.Context, i int) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, goroutines)
	for i := range goroutines {
		go func() { ended <- do(ctx, i) }()
	}
	return func() {
		tb.Helper()
		cancel()
		for range goroutines {
			Must(tb, <-ended)
		}
	}
}
