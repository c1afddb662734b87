package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkPostgresSnapshot measures 800 messages a second for three minutes, without and with an old
// snapshot that keeps vacuum from removing the rows of settled messages, as a dump or a long query
// does.
//
//	msgs/s          handled, up to the end of the load
//	backlog         the most messages that were pushed and not handled, looked at with each push
//	late-p99-ms     from the due time to the handler
//	held/free       the rates of the two
//
// Goal for held/free: 0.9.
func BenchmarkPostgresSnapshot(b *testing.B) {
	rates := make(map[bool]float64)
	for _, held := range []bool{false, true} {
		prefix := map[bool]string{false: "free-", true: "held-"}[held]
		q, s := ownPostgres(b)
		if held {
			tx, err := s.pool.BeginTx(b.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			load.Must(b, err)
			defer func() { _ = tx.Rollback(context.Background()) }()
			_, err = tx.Exec(b.Context(), "SELECT count(*) FROM "+s.prefix+"messages")
			load.Must(b, err)
		}
		rate, backlog, late := steadyLoad(b, q, load.UnlessShort(3*time.Minute, time.Second))
		rates[held] = rate
		b.ReportMetric(rate, prefix+"msgs/s")
		b.ReportMetric(float64(backlog), prefix+"backlog")
		load.ReportQuantiles(b, prefix+"late-", late)
	}
	b.ReportMetric(rates[true]/rates[false], "held/free")
	load.OnePass(b)
}

// steadyLoad pushes 8 messages each 10 ms, due at once, for that long, to a consumer of 32 workers.
func steadyLoad(b *testing.B, q delayq.Queue, lasts time.Duration) (rate float64, backlog int64, late []time.Duration) {
	const each, interval = 8, 10 * time.Millisecond
	start := time.Now()
	due := make([]time.Time, each*int(lasts/interval))
	for i := range due {
		due[i] = start.Add(time.Duration(i/each) * interval)
	}
	t := load.NewTally(due)
	ms := t.Messages()
	var handled atomic.Int64
	stop := load.Consume(b, func(d *delayq.Delivery) {
		t.Handle(d)
		handled.Add(1)
	}, q)
	for i := 0; i < len(due); i += each {
		time.Sleep(time.Until(due[i])) // the pace is the load
		_, err := q.PushBatch(b.Context(), ms[i:i+each])
		load.Must(b, err)
		backlog = max(backlog, int64(i+each)-handled.Load())
	}
	rate = float64(handled.Load()) / time.Since(start).Seconds()
	t.Wait()
	stop()
	return rate, backlog, t.Outcome().Late
}
