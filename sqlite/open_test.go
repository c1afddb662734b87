package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/sqlite"
)

// TestOpenWhileAnotherOpens has a first Open wait for the lock of a file without tables. A second one
// ends with its context, and Close does not wait.
func TestOpenWhileAnotherOpens(t *testing.T) {
	path := newFile(t)
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=journal_mode(WAL)")
	must(t, err)
	defer func() { must(t, db.Close()) }()
	lock, err := db.Conn(t.Context())
	must(t, err)
	_, err = lock.ExecContext(t.Context(), "CREATE TABLE own (x); BEGIN IMMEDIATE")
	must(t, err)
	b := sqlite.New(path, sqlite.BusyTimeout(5*time.Minute))
	first := make(chan error, 1)
	go func() {
		_, err := b.Open(context.Background(), "q", backend.Options{})
		first <- err
	}()
	time.Sleep(100 * time.Millisecond) // else the second may be the first
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := b.Open(ctx, "q", backend.Options{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	must(t, b.Close())
	if took := time.Since(began); took > time.Minute {
		t.Errorf("Close ended after %v", took)
	}
	_, err = lock.ExecContext(t.Context(), "ROLLBACK")
	must(t, err)
	must(t, lock.Close())
	if err := <-first; !errors.Is(err, backend.ErrClosed) {
		t.Errorf("the first Open: %v", err)
	}
}
