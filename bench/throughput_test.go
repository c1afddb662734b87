package bench

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkThroughput measures a message's whole life through the public API: push, receive
// and ack of 100 bytes that are due at once, in ns per message.
//
//	single       one goroutine, a call a message; goal on memory 3,000 ns
//	batch=100    one goroutine, 100 messages a call; goal on memory 1,500 ns
//	parallel=32  32 goroutines, a call a message
func BenchmarkThroughput(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		b.Run("single", func(b *testing.B) { throughput(b, t, single) })
		b.Run("batch=100", func(b *testing.B) { throughput(b, t, batches) })
		b.Run("parallel=32", func(b *testing.B) { throughput(b, t, parallel) })
	})
}

func throughput(b *testing.B, t target, run func(*testing.B, delayq.Queue)) {
	q := t.queue(b)
	b.ReportAllocs()
	b.ResetTimer()
	run(b, q)
	b.StopTimer()
	mustHold(b, q, 0)
}

func single(b *testing.B, q delayq.Queue) {
	for range b.N {
		liveOne(b, q)
	}
}

func parallel(b *testing.B, q delayq.Queue) {
	const goroutines = 32
	procs := runtime.GOMAXPROCS(0)
	b.SetParallelism((goroutines + procs - 1) / procs)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			liveOne(b, q)
		}
	})
}

func batches(b *testing.B, q delayq.Queue) {
	ms := make([]delayq.Message, 100)
	for i := range ms {
		ms[i].Body = load.Body
	}
	for left := b.N; left > 0; left -= len(ms) {
		liveBatch(b, q, ms[:min(left, len(ms))])
	}
}

// liveOne takes a message through its life; another goroutine's, when they are many.
func liveOne(b *testing.B, q delayq.Queue) {
	ctx := context.Background()
	_, err := q.Push(ctx, load.Body)
	load.Must(b, err)
	d, err := q.Receive(ctx)
	load.Must(b, err)
	mustBeWhole(b, q, d, time.Now())
	load.Must(b, d.Ack(ctx))
}

func liveBatch(b *testing.B, q delayq.Queue, ms []delayq.Message) {
	ctx := context.Background()
	_, err := q.PushBatch(ctx, ms)
	load.Must(b, err)
	for left := len(ms); left > 0; {
		ds, err := q.ReceiveBatch(ctx, left)
		load.Must(b, err)
		now := time.Now()
		for _, d := range ds {
			mustBeWhole(b, q, d, now)
		}
		load.Must(b, q.AckBatch(ctx, ds))
		left -= len(ds)
	}
}
