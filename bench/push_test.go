package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// BenchmarkPush measures pushes of 100 bytes alone, due in an hour and later, in ns per message.
//
//	single        one goroutine, a call a message
//	parallel=64   64 goroutines, a call a message
//	parallel=256  256 goroutines, a call a message; goal on Redis: twice the rate of asynq
//	batch=100     one goroutine, 100 messages a call; goal on Redis: five times that rate
func BenchmarkPush(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		b.Run("single", func(b *testing.B) { pushes(b, t, pushFrom(1)) })
		b.Run("parallel=64", func(b *testing.B) { pushes(b, t, pushFrom(64)) })
		b.Run("parallel=256", func(b *testing.B) { pushes(b, t, pushFrom(256)) })
		b.Run("batch=100", func(b *testing.B) { pushes(b, t, pushBatches) })
	})
}

func pushes(b *testing.B, t target, run func(*testing.B, delayq.Queue)) {
	q := t.queue(b)
	b.ReportAllocs()
	b.ResetTimer()
	run(b, q)
	b.StopTimer()
	mustHold(b, q, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// pushFrom pushes from that many goroutines.
func pushFrom(goroutines int) func(*testing.B, delayq.Queue) {
	return func(b *testing.B, q delayq.Queue) {
		var left atomic.Int64
		left.Store(int64(b.N))
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for left.Add(-1) >= 0 && !b.Failed() {
					pushOne(b, q)
				}
			})
		}
		all.Wait()
	}
}

func pushOne(b *testing.B, q delayq.Queue) {
	if _, err := q.Push(context.Background(), body, delayq.After(time.Hour)); err != nil {
		b.Error(err)
	}
}

func pushBatches(b *testing.B, q delayq.Queue) {
	due := farAhead(time.Now())
	ms := make([]delayq.Message, 100)
	for left := b.N; left > 0; left -= len(ms) {
		ms = ms[:min(left, len(ms))]
		for i := range ms {
			ms[i] = delayq.Message{Body: body, Due: due()}
		}
		_, err := q.PushBatch(context.Background(), ms)
		must(b, err)
	}
}
