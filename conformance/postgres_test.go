package conformance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// postgresBackends are the ways to reach PostgreSQL: pgx, database/sql, which cannot listen, and pgx through a
// PgBouncer, where prepared statements and LISTEN do not work.
func postgresBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	native := postgresHarness(func(ctx context.Context, prefix string) (backend.Backend, func(), error) {
		return onPool(ctx, testenv.SharedPostgres(t).URL(), postgres.Prefix(prefix))
	})
	native.Begin, native.BeginElsewhere = beginPgx(t, "postgres"), beginPgx(t, "elsewhere")
	std := postgresHarness(func(_ context.Context, prefix string) (backend.Backend, func(), error) {
		db, err := sql.Open("pgx", testenv.SharedPostgres(t).URL())
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(8)
		return postgres.NewDB(db, postgres.Prefix(prefix), postgres.Poll(200*time.Millisecond)), func() { _ = db.Close() }, nil
	})
	std.Begin, std.BeginElsewhere = beginStd(t, "postgres"), beginStd(t, "elsewhere")
	realtime := native
	realtime.Virtual, realtime.Tick = false, 400*time.Millisecond // each call may wait for the disk
	pooler := sync.OnceValue(func() *testenv.PgBouncerServer { return testenv.PgBouncer(t, testenv.SharedPostgres(t), "transaction") })
	pooled := postgresHarness(func(ctx context.Context, prefix string) (backend.Backend, func(), error) {
		return onPool(ctx, pooler().URL()+"&default_query_exec_mode=exec", postgres.Prefix(prefix), postgres.Poll(200*time.Millisecond))
	})
	pooled.Begin, pooled.BeginElsewhere = native.Begin, native.BeginElsewhere
	return map[string]conformance.Harness{
		"postgres": native, "postgres-realtime": realtime, "postgres-sql": std, "postgres-pgbouncer": pooled,
	}
}

// onPool returns a backend with a pool of its own.
func onPool(ctx context.Context, url string, opts ...postgres.Option) (backend.Backend, func(), error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return postgres.New(pool, opts...), pool.Close, nil
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

// databaseURL is a database of the shared server, which is made where it is not there.
func databaseURL(ctx context.Context, t *testing.T, name string) (string, error) {
	t.Helper()
	url := testenv.SharedPostgres(t).URL()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	var there bool
	err = conn.QueryRow(ctx, "SELECT pg_advisory_lock(1), EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(nil, &there)
	if err == nil && !there {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	}
	return strings.Replace(url, "/postgres?", "/"+name+"?", 1), err
}

// beginPgx begins transactions of pgx.
func beginPgx(t *testing.T, database string) func(context.Context, backend.Backend) (conformance.Transaction, error) {
	t.Helper()
	return func(ctx context.Context, _ backend.Backend) (conformance.Transaction, error) {
		url, err := databaseURL(ctx, t, database)
		if err != nil {
			return conformance.Transaction{}, err
		}
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return conformance.Transaction{}, err
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return conformance.Transaction{}, errors.Join(err, conn.Close(ctx))
		}
		end := func(how func(context.Context) error) func() error {
			return func() error {
				defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
				if err := how(context.WithoutCancel(ctx)); !errors.Is(err, pgx.ErrTxClosed) {
					return err
				}
				return nil
			}
		}
		return conformance.Transaction{Tx: tx, Commit: end(tx.Commit), Rollback: end(tx.Rollback)}, nil
	}
}

// beginStd begins transactions of database/sql.
func beginStd(t *testing.T, database string) func(context.Context, backend.Backend) (conformance.Transaction, error) {
	t.Helper()
	return func(ctx context.Context, _ backend.Backend) (conformance.Transaction, error) {
		url, err := databaseURL(ctx, t, database)
		if err != nil {
			return conformance.Transaction{}, err
		}
		db, err := sql.Open("pgx", url)
		if err != nil {
			return conformance.Transaction{}, err
		}
		return beginSQL(ctx, db, func() { _ = db.Close() })
	}
}
