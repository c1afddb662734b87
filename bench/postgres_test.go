package bench

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

var postgresPrefixes atomic.Int64

// openPostgres returns empty tables on the server that all benchmarks share.
func openPostgres(tb testing.TB) backend.Backend {
	tb.Helper()
	b := postgres.New(ownPool(tb), postgres.Prefix(fmt.Sprintf("bench%d_", postgresPrefixes.Add(1))))
	tb.Cleanup(func() { _ = b.Close() })
	return b
}

// twoPostgres returns two backends, each with a pool of its own.
func twoPostgres(tb testing.TB) (one, other backend.Backend) {
	prefix := postgres.Prefix(fmt.Sprintf("bench%d_", postgresPrefixes.Add(1)))
	return postgres.New(ownPool(tb), prefix), postgres.New(ownPool(tb), prefix)
}

func ownPool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(testenv.SharedPostgres(tb).URL())
	load.Must(tb, err)
	cfg.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(tb.Context(), cfg)
	load.Must(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}
