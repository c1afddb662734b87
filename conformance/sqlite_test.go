package conformance_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/sqlite"
)

// sqliteBackends run each check on a file of its own. Attach opens the file a second time, with
// connections of its own, as another process does.
func sqliteBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	dir := t.TempDir()
	var files atomic.Int64
	var paths sync.Map // of the backends that New made
	open := func(context.Context) (backend.Backend, func(), error) {
		path := filepath.Join(dir, strconv.FormatInt(files.Add(1), 10), "delay.db")
		b := sqlite.New(path)
		paths.Store(b, path)
		return b, func() { _ = os.RemoveAll(filepath.Dir(path)) }, os.Mkdir(filepath.Dir(path), 0o755)
	}
	h := conformance.Harness{
		New: open,
		Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
			path, _ := paths.Load(b)
			return sqlite.New(path.(string)), nil, nil
		},
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			queues, err := b.(*sqlite.Backend).Queues(ctx)
			if err != nil {
				return nil, err
			}
			return b.(*sqlite.Backend).Remains(ctx, queues...)
		},
		Begin: func(ctx context.Context, b backend.Backend) (conformance.Transaction, error) {
			path, _ := paths.Load(b)
			return beginSQLite(ctx, path.(string))
		},
		BeginElsewhere: func(ctx context.Context, _ backend.Backend) (conformance.Transaction, error) {
			b, cleanup, err := open(ctx)
			if err != nil {
				return conformance.Transaction{}, err
			}
			t.Cleanup(cleanup)
			_, err = b.Open(ctx, "orders", backend.Options{}) // it has the same tables
			if err = errors.Join(err, b.Close()); err != nil {
				return conformance.Transaction{}, err
			}
			path, _ := paths.Load(b)
			return beginSQLite(ctx, path.(string))
		},
		Virtual: true,
		Quiet:   10 * time.Millisecond,
	}
	realtime := h
	realtime.Virtual, realtime.Quiet, realtime.Tick = false, 0, 400*time.Millisecond // each call may wait for the disk
	return map[string]conformance.Harness{"sqlite": h, "sqlite-realtime": realtime}
}

func beginSQLite(ctx context.Context, path string) (conformance.Transaction, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate")
	if err != nil {
		return conformance.Transaction{}, err
	}
	return beginSQL(ctx, db, func() { _ = db.Close() })
}

// beginSQL begins a transaction, and calls done at its end.
func beginSQL(ctx context.Context, db *sql.DB, done func()) (conformance.Transaction, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		done()
		return conformance.Transaction{}, err
	}
	end := func(how func() error) func() error {
		return func() error {
			defer done()
			if err := how(); !errors.Is(err, sql.ErrTxDone) {
				return err
			}
			return nil
		}
	}
	return conformance.Transaction{Tx: tx, Commit: end(tx.Commit), Rollback: end(tx.Rollback)}, nil
}
