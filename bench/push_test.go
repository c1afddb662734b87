package bench

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// BenchmarkPush measures pushes of 100 bytes alone, due in an hour and later, in ns per message.
//
//	parallel=256  256 goroutines, a call a message; goal on Redis: twice the rate of asynq
//	batch=100     one goroutine, 100 messages a call; goal on Redis: five times that rate
func BenchmarkPush(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		b.Run("parallel=256", func(b *testing.B) { pushes(b, t, pushParallel) })
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

func pushParallel(b *testing.B, q delayq.Queue) {
	const goroutines = 256
	procs := runtime.GOMAXPROCS(0)
	b.SetParallelism((goroutines + procs - 1) / procs)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := q.Push(context.Background(), body, delayq.After(time.Hour))
			must(b, err)
		}
	})
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
