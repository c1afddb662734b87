package bench

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
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
	return func(b *testing.B, q delayq.Queue) { load.Push(b, q, b.N, goroutines) }
}

func pushBatches(b *testing.B, q delayq.Queue) {
	due := farAhead(time.Now())
	ms := make([]delayq.Message, 100)
	for left := b.N; left > 0; left -= len(ms) {
		ms = ms[:min(left, len(ms))]
		for i := range ms {
			ms[i] = delayq.Message{Body: load.Body, Due: due()}
		}
		_, err := q.PushBatch(context.Background(), ms)
		load.Must(b, err)
	}
}
