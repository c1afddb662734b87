package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // as goqite and backlite leave the driver to their users
	"maragu.dev/goqite"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// openFile opens a new file as the documentation of goqite and backlite does: with a WAL, and 5 s of
// patience. Each commit is synced, which is SQLite's default.
func openFile(tb testing.TB) *sql.DB {
	tb.Helper()
	u := url.URL{
		Scheme: "file", OmitHost: true, Path: filepath.Join(tb.TempDir(), "queue.db"),
		RawQuery: "_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(on)",
	}
	db, err := sql.Open("sqlite3", u.String())
	load.Must(tb, err)
	tb.Cleanup(func() { load.Must(tb, db.Close()) })
	return db
}

// goqiteSystem has one connection, as in goqite's README.
type goqiteSystem struct {
	db    *sql.DB
	queue *goqite.Queue
}

func openGoqite(tb testing.TB) system {
	tb.Helper()
	db := openFile(tb)
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	_, err := db.Exec(schemaOf(tb, "maragu.dev/goqite", "schema_sqlite.sql"))
	load.Must(tb, err)
	return goqiteSystem{db, goqite.New(goqite.NewOpts{DB: db, Name: "bench"})}
}

func (s goqiteSystem) push(ctx context.Context, m delayq.Message) error {
	return s.queue.Send(ctx, goqite.Message{Body: m.Body, Delay: max(0, time.Until(m.Due))})
}

func (s goqiteSystem) pushAll(ctx context.Context, ms []delayq.Message) error {
	return inTransaction(ctx, s.db, func(tx *sql.Tx) error {
		for _, m := range ms {
			if err := s.queue.SendTx(ctx, tx, goqite.Message{Body: m.Body, Delay: max(0, time.Until(m.Due))}); err != nil {
				return err
			}
		}
		return nil
	})
}

// inTransaction calls then after the commit.
func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error, then ...func()) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, call := range then {
		call()
	}
	return nil
}

// goqiteLooks is the interval at which the runner of goqite's package jobs looks, by default.
const goqiteLooks = 100 * time.Millisecond

func (s goqiteSystem) consume(tb testing.TB, handle func(body []byte)) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for range load.Workers {
		workers.Go(func() {
			for {
				m, err := s.queue.ReceiveAndWait(ctx, goqiteLooks)
				if err == nil {
					handle(m.Body)
					err = s.queue.Delete(context.WithoutCancel(ctx), m.ID)
				}
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					tb.Errorf("goqite: %v", err)
					return
				}
			}
		})
	}
	return func() { cancel(); workers.Wait() }
}

func (s goqiteSystem) left(ctx context.Context) (int64, error) { return countRows(ctx, s.db, "goqite") }

func countRows(ctx context.Context, db *sql.DB, table string) (n int64, err error) {
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting rows of %s: %w", table, err)
	}
	return n, nil
}

func (s goqiteSystem) clear(tb testing.TB) {
	tb.Helper()
	_, err := s.db.Exec("DELETE FROM goqite")
	load.Must(tb, err)
}
