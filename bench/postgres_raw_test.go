package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// rawPostgres is a delay queue in PostgreSQL as an application writes it by hand: three narrow
// tables, SKIP LOCKED, 200 messages a claim, four connections.
type rawPostgres struct{ pool *pgxpool.Pool }

const (
	rawTables = `DROP TABLE IF EXISTS raw_message, raw_due, raw_lease;
		CREATE TABLE raw_message (id bigint PRIMARY KEY, body bytea NOT NULL);
		CREATE TABLE raw_due (due timestamptz, id bigint, PRIMARY KEY (due, id));
		CREATE TABLE raw_lease (id bigint PRIMARY KEY, token bigint NOT NULL, until timestamptz NOT NULL)`
	rawPush = `WITH m AS (INSERT INTO raw_message SELECT * FROM unnest($1::bigint[], $2::bytea[]))
		INSERT INTO raw_due SELECT * FROM unnest($3::timestamptz[], $1::bigint[])`
	rawClaim = `WITH c AS MATERIALIZED (
			SELECT due, id FROM raw_due WHERE due <= clock_timestamp() ORDER BY due, id LIMIT $2 FOR UPDATE SKIP LOCKED
		), d AS (DELETE FROM raw_due r USING c WHERE r.due = c.due AND r.id = c.id RETURNING r.id
		), l AS (INSERT INTO raw_lease SELECT id, $1, clock_timestamp() + interval '1 minute' FROM d RETURNING id)
		SELECT m.id, m.body FROM l JOIN raw_message m ON m.id = l.id`
	rawAck = `WITH l AS (DELETE FROM raw_lease r USING unnest($1::bigint[]) u (id) WHERE r.id = u.id AND r.token = $2 RETURNING r.id)
		DELETE FROM raw_message m USING l WHERE m.id = l.id`

	rawConnections = 4
	rawBatch       = 200
)

func newRawPostgres(b *testing.B) rawPostgres {
	r := rawPostgres{ownPool(b)}
	_, err := r.pool.Exec(b.Context(), rawTables)
	load.Must(b, err)
	return r
}

// push stores n messages, so many a statement.
func (r rawPostgres) push(b *testing.B, n, batch int, due time.Time) {
	load.Calls(b, n/batch, rawConnections, func(_, i int) error {
		ids, bodies, dues := make([]int64, batch), make([][]byte, batch), make([]time.Time, batch)
		for k := range ids {
			ids[k], bodies[k], dues[k] = int64(i*batch+k), load.Body, due
		}
		_, err := r.pool.Exec(b.Context(), rawPush, ids, bodies, dues)
		return err
	})
}

// drain claims and acks n messages.
func (r rawPostgres) drain(b *testing.B, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	load.Calls(b, rawConnections, rawConnections, func(int, int) error {
		for left.Load() > 0 {
			token := rand.Int64()
			rows, err := r.pool.Query(b.Context(), rawClaim, token, rawBatch)
			if err != nil {
				return err
			}
			var ids []int64
			var id int64
			var body []byte
			if _, err = pgx.ForEachRow(rows, []any{&id, &body}, func() error { ids = append(ids, id); return nil }); err != nil {
				return err
			}
			if _, err = r.pool.Exec(b.Context(), rawAck, ids, token); err != nil {
				return err
			}
			left.Add(-int64(len(ids)))
		}
		return nil
	})
}

// BenchmarkPostgresDrain measures 100,000 messages of 100 bytes that are due, in msgs/s, right after
// filling and after an ANALYZE.
//
//	delayq        32 workers of one Consume
//	delayq-batch  ReceiveBatch and AckBatch of 100 messages by four goroutines
//	raw           by hand: see rawPostgres
//
// Goal for delayq against raw: 0.5.
func BenchmarkPostgresDrain(b *testing.B) {
	for _, statistics := range []bool{false, true} {
		b.Run(fmt.Sprintf("statistics=%t", statistics), func(b *testing.B) {
			n := load.UnlessShort(100_000, 2_000)
			pool := ownPool(b)
			ready := func() {
				if statistics {
					_, err := pool.Exec(b.Context(), "ANALYZE")
					load.Must(b, err)
				}
				_, err := pool.Exec(b.Context(), "CHECKPOINT")
				load.Must(b, err)
			}
			sides := load.NewRace()
			for range load.UnlessShort(3, 1) {
				for name, consume := range map[string]consumer{"delayq": consume, "delayq-batch": consumeBatches} {
					q, err := delayq.New(b.Context(), "drain", delayq.WithBackend(openPostgres(b)))
					load.Must(b, err)
					t := load.Burst(n, time.Now())
					load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 1)
					ready()
					sides.Run(name, n, func() { consume(b, q, t)() })
					load.Must(b, q.Close())
				}
				r := newRawPostgres(b)
				r.push(b, n, delayq.MaxBatch, time.Now())
				ready()
				sides.Run("raw", n, func() { r.drain(b, n) })
			}
			reportRace(b, sides, "raw")
		})
	}
}

// BenchmarkPostgresPush measures pushes of 100 bytes, in msgs/s.
//
//	delayq        256 goroutines, a call a message
//	delayq-batch  four goroutines, 100 messages a call
//	raw           by hand: four connections, 100 messages a statement
//
// Goal for delayq against raw: 0.6.
func BenchmarkPostgresPush(b *testing.B) {
	n := load.UnlessShort(100_000, 2_000)
	sides := load.NewRace()
	for range load.UnlessShort(3, 1) {
		q, err := delayq.New(context.Background(), "push", delayq.WithBackend(openPostgres(b)))
		load.Must(b, err)
		sides.Run("delayq", n, func() { load.Push(b, q, n, 256) })
		ms := load.Burst(n, time.Now().Add(time.Hour)).Messages()
		sides.Run("delayq-batch", n, func() { load.PushBatches(b, q, ms, 100, 4) })
		load.Must(b, q.Close())
		r := newRawPostgres(b)
		sides.Run("raw", n, func() { r.push(b, n, 100, time.Now().Add(time.Hour)) })
	}
	reportRace(b, sides, "raw")
}
