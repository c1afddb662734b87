package bench

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkRetention measures how 100,000 dead letters of 100 bytes settle at a count of 10,000,
// step by step without the pauses of a queue.
//
//	letters/s   deleted
//	p50-ms …    a step's round trip
//	cpu-max-ms  the server's processor time of the dearest step, whatever else the machine does:
//	            so long do others wait for it. Goal: 5
func BenchmarkRetention(b *testing.B) {
	overRedis(b, func(b *testing.B, t target) {
		letters, kept := t.size(100_000, 2_000), t.size(10_000, 200)
		server := load.OwnRedis(b)
		store, _ := t.connect(b, server)
		q, err := delayq.New(context.Background(), "bench", delayq.WithBackend(store), load.Quiet, delayq.DeadLetterRetention(0, 0))
		load.Must(b, err)
		b.Cleanup(func() { load.Must(b, q.Close()) })
		deadLetter(b, q, letters)
		trim(b, server, store, backend.Retention{MaxAge: time.Hour, MaxCount: kept}, letters-kept)
		st, err := q.Stats(context.Background())
		load.Must(b, err)
		if st.Dead != int64(kept) {
			b.Fatalf("%d letters are left, want %d", st.Dead, kept)
		}
		load.OnePass(b)
	})
}

// deadLetter makes dead letters.
func deadLetter(b *testing.B, q delayq.Queue, letters int) {
	b.Helper()
	ctx := context.Background()
	for made := 0; made < letters; {
		ms := make([]delayq.Message, min(delayq.MaxBatch, letters-made))
		for i := range ms {
			ms[i].Body = make([]byte, 100)
		}
		_, err := q.PushBatch(ctx, ms)
		load.Must(b, err)
		for n := 0; n < len(ms); {
			ds, err := q.ReceiveBatch(ctx, len(ms)-n)
			load.Must(b, err)
			load.Must(b, q.DeadLetterBatch(ctx, ds, "for the benchmark"))
			n += len(ds)
		}
		made += len(ms)
	}
}

// trim deletes dead letters in steps, and reports what they cost.
func trim(b *testing.B, server load.Redis, store backend.Backend, keep backend.Retention, want int) {
	b.Helper()
	ctx := context.Background()
	q, err := store.Open(ctx, "bench", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	load.Must(b, err)
	defer func() { load.Must(b, q.Close()) }()
	var took, busy []time.Duration
	var all time.Duration
	deleted := 0
	for more := true; more; {
		before, start := server.Spent(b), time.Now()
		var n int
		n, more, err = q.TrimDead(ctx, keep)
		load.Must(b, err)
		deleted += n
		took = append(took, time.Since(start))
		all += took[len(took)-1]
		busy = append(busy, server.Spent(b)-before)
	}
	if deleted != want {
		b.Fatalf("%d letters were deleted, want %d", deleted, want)
	}
	b.ReportMetric(float64(deleted)/all.Seconds(), "letters/s")
	load.ReportQuantiles(b, "", took)
	b.ReportMetric(load.Millis(slices.Max(busy)), "cpu-max-ms")
}
