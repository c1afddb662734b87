package bench

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/postgres"
)

// statements are those of package postgres, sent by hand: four connections, no library in between.
type statements struct {
	pool   *pgxpool.Pool
	prefix string
}

const (
	statementConnections = 4
	statementBatch       = 200
)

// fill stores n messages, so many a statement.
func (s statements) fill(b *testing.B, n, batch int, delay time.Duration) {
	push := "SELECT * FROM " + s.prefix + "push('raw', NULL, $1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[])"
	load.Calls(b, n/batch, statementConnections, func(_, i int) error {
		ids, bodies, headers := make([]string, batch), make([][]byte, batch), make([][]byte, batch)
		dues, delays, windows := make([]int64, batch), make([]int64, batch), make([]int64, batch)
		for k := range ids {
			ids[k], bodies[k], headers[k] = fmt.Sprintf("%026d", i*batch+k), load.Body, []byte{}
			dues[k], delays[k] = -1, delay.Microseconds()
		}
		_, err := s.pool.Exec(b.Context(), push, ids, dues, delays, windows, headers, bodies)
		return err
	})
}

// drain claims and acks n messages.
func (s statements) drain(b *testing.B, n int) {
	claim := "SELECT id, body FROM " + s.prefix + "claim('raw', NULL, $1, 60000000, $2, 0, 9000000000000000000, false)"
	ack := "SELECT * FROM " + s.prefix + "ack('raw', NULL, $1::text[], $2::bigint[])"
	var left atomic.Int64
	left.Store(int64(n))
	load.Calls(b, statementConnections, statementConnections, func(int, int) error {
		for left.Load() > 0 {
			token := rand.Int64N(1<<62) + 1
			rows, err := s.pool.Query(b.Context(), claim, statementBatch, token)
			if err != nil {
				return err
			}
			var ids []string
			var tokens []int64
			var id *string
			var body []byte
			if _, err = pgx.ForEachRow(rows, []any{&id, &body}, func() error {
				if id != nil {
					ids, tokens = append(ids, *id), append(tokens, token)
				}
				return nil
			}); err != nil {
				return err
			}
			if _, err = s.pool.Exec(b.Context(), ack, ids, tokens); err != nil {
				return err
			}
			left.Add(-int64(len(ids)))
		}
		return nil
	})
}

// ownPostgres returns an empty queue, and its statements.
func ownPostgres(b *testing.B) (delayq.Queue, statements) {
	s := statements{ownPool(b), fmt.Sprintf("bench%d_", postgresPrefixes.Add(1))}
	store := postgres.New(s.pool, postgres.Prefix(s.prefix))
	b.Cleanup(func() { _ = store.Close() })
	q, err := delayq.New(b.Context(), "queue", delayq.WithBackend(store))
	load.Must(b, err)
	return q, s
}

// BenchmarkPostgresDrain measures 100,000 messages of 100 bytes that are due, in msgs/s, right after
// filling and after an ANALYZE.
//
//	consume        32 workers of one Consume
//	consume-batch  ReceiveBatch and AckBatch of 100 messages by four goroutines
//	statements     the statements by hand, 200 messages each, on four connections
//
// Goal for consume against statements: 0.5.
func BenchmarkPostgresDrain(b *testing.B) {
	for _, statistics := range []bool{false, true} {
		b.Run(fmt.Sprintf("statistics=%t", statistics), func(b *testing.B) {
			n := load.UnlessShort(100_000, 2_000)
			ready := func(s statements) {
				if statistics {
					_, err := s.pool.Exec(b.Context(), "ANALYZE")
					load.Must(b, err)
				}
				_, err := s.pool.Exec(b.Context(), "CHECKPOINT")
				load.Must(b, err)
			}
			sides := load.NewRace()
			for range load.UnlessShort(5, 1) {
				for name, consume := range map[string]consumer{"consume": consume, "consume-batch": consumeBatches} {
					q, s := ownPostgres(b)
					t := load.Burst(n, time.Now())
					load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 1)
					ready(s)
					sides.Run(name, n, func() { consume(b, q, t)() })
				}
				_, s := ownPostgres(b)
				s.fill(b, n, 1000, 0)
				ready(s)
				sides.Run("statements", n, func() { s.drain(b, n) })
			}
			reportRace(b, sides, "statements")
		})
	}
}

// BenchmarkPostgresPush measures pushes of 100 bytes, in msgs/s.
//
//	push        256 goroutines, a call a message
//	push-batch  four goroutines, 100 messages a call
//	statements  the statement by hand, 100 messages each, on four connections
//
// Goal for push against statements: 0.6.
func BenchmarkPostgresPush(b *testing.B) {
	n := load.UnlessShort(100_000, 2_000)
	sides := load.NewRace()
	for range load.UnlessShort(5, 1) {
		q, _ := ownPostgres(b)
		sides.Run("push", n, func() { load.Push(b, q, n, 256) })
		q, _ = ownPostgres(b)
		ms := load.Burst(n, time.Now().Add(time.Hour)).Messages()
		sides.Run("push-batch", n, func() { load.PushBatches(b, q, ms, 100, 4) })
		_, s := ownPostgres(b)
		sides.Run("statements", n, func() { s.fill(b, n, 100, time.Hour) })
	}
	reportRace(b, sides, "statements")
}
