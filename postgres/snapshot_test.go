package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestHeldSnapshot settles messages while an old snapshot keeps vacuum from removing their rows. The
// scan of a claim starts behind them: it takes no longer when there are ten thousands. A scan from
// the beginning does, which shows that the rows are there.
func TestHeldSnapshot(t *testing.T) {
	testenv.In(t, testenv.All)
	p := pool(t, testenv.Postgres(t).URL(), func(c *pgxpool.Config) { c.MaxConns = 4 })
	q := opened(t, postgres.New(p))
	settle := func(name string, n int) {
		for i := 0; i < n; i += 500 {
			none(t, q.Schedule(t.Context(), pushes(500, fmt.Sprint(name, i), 0)))
			for left := 500; left > 0; {
				ds, err := q.Receive(t.Context(), left, time.Minute)
				must(t, err)
				ls := make([]backend.Lease, len(ds))
				for k, d := range ds {
					ls[k] = d.Lease()
				}
				none(t, q.Ack(t.Context(), ls))
				left -= len(ds)
			}
		}
	}
	settle("prepare", 500)
	tx, err := p.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), "SELECT count(*) FROM delayq_messages")
	must(t, err)
	settle("dead", 40_000)

	conn, err := p.Acquire(t.Context()) // one session: the first use of a function reads the catalog
	must(t, err)
	defer conn.Release()
	blocks := func(floors string) (n int) {
		rows, err := conn.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) SELECT * FROM delayq_claim('q', NULL, 10, 60000000, 1, "+floors+", false)")
		must(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		for _, line := range lines {
			if _, hits, found := strings.Cut(line, "shared hit="); found {
				_, err := fmt.Sscanf(hits, "%d", &n)
				must(t, err)
				return n
			}
		}
		t.Fatalf("no blocks in %q", lines)
		return 0
	}
	const behind = "public.delayq_clock(NULL) - 1000, 9000000000000000000" // as a worker that has looked before
	_, _ = blocks("-1, -1"), blocks(behind)
	near, whole := blocks(behind), blocks("-1, -1")
	t.Logf("behind the deleted rows %d blocks, from the beginning %d", near, whole)
	if near*20 > whole {
		t.Errorf("a claim behind the deleted rows looks at %d blocks, one from the beginning at %d: want a twentieth at most", near, whole)
	}
}
