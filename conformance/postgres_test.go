package conformance_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// postgresBackends are the two ways to reach PostgreSQL: pgx, and database/sql, which cannot listen.
func postgresBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	pgx := postgresHarness(func(ctx context.Context, prefix string) (backend.Backend, func(), error) {
		cfg, err := pgxpool.ParseConfig(testenv.SharedPostgres(t).URL())
		if err != nil {
			return nil, nil, err
		}
		cfg.MaxConns = 8
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		return postgres.New(pool, postgres.Prefix(prefix)), pool.Close, nil
	})
	std := postgresHarness(func(_ context.Context, prefix string) (backend.Backend, func(), error) {
		db, err := sql.Open("pgx", testenv.SharedPostgres(t).URL())
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(8)
		return postgres.NewDB(db, postgres.Prefix(prefix), postgres.Poll(200*time.Millisecond)), func() { _ = db.Close() }, nil
	})
	realtime := pgx
	realtime.Virtual = false
	return map[string]conformance.Harness{"postgres": pgx, "postgres-realtime": realtime, "postgres-sql": std}
}

// postgresHarness gives each backend tables and a pool of its own, on a shared server.
func postgresHarness(open func(ctx context.Context, prefix string) (backend.Backend, func(), error)) conformance.Harness {
	var places sync.Map // prefixes of the backends that New made
	return conformance.Harness{
		New: func(ctx context.Context) (backend.Backend, func(), error) {
			prefix := fmt.Sprintf("c%d_", prefixes.Add(1))
			b, cleanup, err := open(ctx, prefix)
			if err == nil {
				places.Store(b, prefix)
			}
			return b, cleanup, err
		},
		Attach: func(ctx context.Context, b backend.Backend) (backend.Backend, func(), error) {
			prefix, _ := places.Load(b)
			return open(ctx, prefix.(string))
		},
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			return b.(*postgres.Backend).Queues(ctx)
		},
		Virtual: true,
		Quiet:   30 * time.Millisecond,
	}
}
