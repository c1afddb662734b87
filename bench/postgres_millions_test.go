package bench

import (
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/postgres"
)

// BenchmarkPostgresMillions measures a worker beside ten million messages of 100 bytes that are due in
// an hour: Receive of one message that is due, and of a hundred, with the server's commit.
//
//	push-msgs/s   how fast the ten million were pushed, 1,000 a statement
//	disk-B/msg    tables and indexes
//	one-p50-ms one-p99-ms one-max-ms   batch-p50-ms …
func BenchmarkPostgresMillions(b *testing.B) {
	pending, rounds := load.UnlessShort(10_000_000, 10_000), load.UnlessShort(2000, 200)
	_, s := ownPostgres(b)
	start := time.Now()
	s.fill(b, pending, 1000, time.Hour)
	b.ReportMetric(float64(pending)/time.Since(start).Seconds(), "push-msgs/s")
	var size int64
	load.Must(b, s.pool.QueryRow(b.Context(), "SELECT pg_total_relation_size($1::text::regclass)", s.prefix+"messages").Scan(&size))
	b.ReportMetric(float64(size)/float64(pending), "disk-B/msg")

	store := postgres.New(s.pool, postgres.Prefix(s.prefix))
	b.Cleanup(func() { _ = store.Close() })
	q, err := delayq.New(b.Context(), "raw", delayq.WithBackend(store), load.Quiet)
	load.Must(b, err)
	for prefix, batch := range map[string]int{"one-": 1, "batch-": 100} {
		var took []time.Duration
		for range rounds / batch {
			load.PushBatches(b, q, load.Burst(batch, time.Time{}).Messages(), batch, 1)
			start := time.Now()
			ds, err := q.ReceiveBatch(b.Context(), batch)
			took = append(took, time.Since(start))
			load.Must(b, err)
			load.Must(b, q.AckBatch(b.Context(), ds))
		}
		load.ReportQuantiles(b, prefix, took)
	}
	load.OnePass(b)
}
