package delayq_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/sqlite"
)

// newFile opens a queue in a SQLite file, and a handle of database/sql on the same file.
func newFile(t *testing.T) (delayq.Queue, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "delay.db")
	b := sqlite.New(path)
	q, err := delayq.New(t.Context(), "orders", delayq.WithBackend(b))
	must(t, err)
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate")
	must(t, err)
	t.Cleanup(func() {
		must(t, q.Close())
		must(t, db.Close())
		must(t, b.Close())
	})
	return q, db
}

func begin(t *testing.T, q delayq.Queue, db *sql.DB) (*sql.Tx, delayq.Tx) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	in, err := delayq.InTx(q, tx)
	must(t, err)
	return tx, in
}

// TestInTx makes each call in a transaction that is rolled back, and in one that is committed.
func TestInTx(t *testing.T) {
	t.Parallel()
	q, db := newFile(t)
	hour := delayq.After(time.Hour)
	for _, id := range []string{"cancelled", "cancelled too", "moved", "moved too", "moved by a batch", "replaced"} {
		_, err := q.Push(t.Context(), []byte("old"), delayq.ID(id), hour)
		must(t, err)
	}
	_, err := q.Push(t.Context(), nil, delayq.ID("held"))
	must(t, err)
	d := receive(t, q)
	for _, commit := range []bool{false, true} {
		tx, in := begin(t, q, db)
		_, err := in.Push(t.Context(), []byte("new"), delayq.ID("pushed"), hour)
		must(t, err)
		_, err = in.Push(t.Context(), []byte("new"), delayq.ID("pushed"), hour)
		wantIs(t, err, delayq.ErrDuplicate)
		ids, err := in.PushBatch(t.Context(), []delayq.Message{{Delay: time.Hour}, {Delay: time.Hour}})
		if err != nil || len(ids) != 2 || ids[0] == "" {
			t.Errorf("PushBatch: %q, %v", ids, err)
		}
		_, err = in.Push(t.Context(), []byte("new"), delayq.ID("replaced"), hour, delayq.Replace(), delayq.MaxWait(time.Hour))
		must(t, err)
		must(t, in.Cancel(t.Context(), "cancelled"))
		must(t, in.CancelBatch(t.Context(), []string{"cancelled too"}))
		must(t, in.Reschedule(t.Context(), "moved", time.Now().Add(100*time.Hour)))
		must(t, in.RescheduleAfter(t.Context(), "moved too", 100*time.Hour))
		must(t, in.RescheduleBatch(t.Context(), []delayq.Move{{ID: "moved by a batch", Delay: 100 * time.Hour}}))
		must(t, in.Ack(t.Context(), d))
		want := delayq.Stats{Scheduled: 6, InFlight: 1}
		if commit {
			must(t, tx.Commit())
			want = delayq.Stats{Scheduled: 7}
		} else {
			must(t, tx.Rollback())
		}
		if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != want.Scheduled || s.InFlight != want.InFlight {
			t.Errorf("committed: %v: %+v, %v; want %+v", commit, s, err, want)
		}
		for _, id := range []string{"moved", "moved too", "moved by a batch"} {
			if m, err := q.Get(t.Context(), id); err != nil || (time.Until(m.Due) > 50*time.Hour) != commit {
				t.Errorf("committed: %v: %s is due %v, %v", commit, id, m.Due, err)
			}
		}
		if m, err := q.Get(t.Context(), "replaced"); err != nil || (string(m.Body) == "new") != commit {
			t.Errorf("committed: %v: replaced has %s, %v", commit, m.Body, err)
		}
	}
	wantIs(t, d.Ack(t.Context()), delayq.ErrSettled)
}

// A delivery that was acknowledged in a transaction is still the worker's after a rollback.
func TestNackAfterRollback(t *testing.T) {
	t.Parallel()
	q, db := newFile(t)
	push(t, q)
	d := receive(t, q)
	tx, in := begin(t, q, db)
	must(t, in.Ack(t.Context(), d))
	must(t, tx.Rollback())
	must(t, d.Nack(t.Context(), 0))
	if again := receive(t, q); again.ID != d.ID || again.Attempt != 2 {
		t.Errorf("received %v", again)
	}
}

func TestInTxRefuses(t *testing.T) {
	t.Parallel()
	q, db := newFile(t)
	tx, in := begin(t, q, db)

	_, err := delayq.InTx(newQueue(t), tx)
	wantUnsupported(t, err, delayq.Transactions.String())
	for name, fake := range map[string]delayq.Queue{"nil": nil, "a wrapper": struct{ delayq.Queue }{q}} {
		_, err := delayq.InTx(fake, tx)
		wantIs(t, err, delayq.ErrInvalid)
		if err == nil {
			t.Error(name)
		}
	}
	for _, wrong := range []any{nil, db, (*sql.Tx)(nil)} {
		_, err := delayq.InTx(q, wrong)
		wantIs(t, err, delayq.ErrInvalid)
	}
	wantIs(t, in.Ack(t.Context(), nil), delayq.ErrInvalid)
	other := newQueue(t)
	push(t, other)
	wantIs(t, in.Ack(t.Context(), receive(t, other)), delayq.ErrInvalid)
	_, err = in.Push(t.Context(), nil, delayq.After(-1))
	wantIs(t, err, delayq.ErrInvalid)
	var none context.Context
	wantIs(t, in.Cancel(none, "a"), delayq.ErrInvalid)
	must(t, tx.Commit())
	_, err = in.Push(t.Context(), nil)
	wantIs(t, err, delayq.ErrInvalid)
}
