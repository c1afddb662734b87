package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/delayq/delayq/backend"
)

func database(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin begins a transaction and returns it with a view of the queue.
func begin(t testing.TB, db *sql.DB, q backend.Queue) (*sql.Tx, backend.Queue) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	view, err := q.InTx(tx)
	must(t, err)
	return tx, view
}

// TestCommitWakes has workers wait for a message that is due in an hour. They would look again in a
// minute.
func TestCommitWakes(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	db := database(t, path)
	mustPush(t, q, "far", time.Hour)
	for name, worker := range map[string]backend.Queue{"the same backend": q, "another": open(t, path)} {
		slowest := time.Duration(0)
		for range 10 {
			got := make(chan error, 1)
			go func() {
				ds, err := worker.Receive(t.Context(), 1, time.Minute)
				if err == nil {
					err = errors.Join(worker.Ack(t.Context(), []backend.Lease{ds[0].Lease()})...)
				}
				got <- err
			}()
			time.Sleep(50 * time.Millisecond) // it waits by then, or the push is found at its first look
			tx, view := begin(t, db, q)
			must(t, push(view, "near", 0))
			select {
			case err := <-got:
				t.Fatalf("handed out before the commit, %v", err)
			case <-time.After(30 * time.Millisecond):
			}
			committed := time.Now()
			must(t, tx.Commit())
			must(t, <-got)
			slowest = max(slowest, time.Since(committed))
		}
		t.Logf("%s: the slowest of 10 was received and acknowledged %v after its commit", name, slowest)
		if slowest > 10*time.Second {
			t.Errorf("%s: a commit did not wake the worker", name)
		}
	}
}

// TestTransactionThatFailed makes calls in transactions that cannot go on, or that may.
func TestTransactionThatFailed(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	mustPush(t, q, "first", time.Hour)
	db := database(t, path)
	for _, trigger := range []string{
		"CREATE TRIGGER poison AFTER INSERT ON delayq_content WHEN NEW.body = X'01' BEGIN SELECT RAISE(ABORT, 'poison'); END",
		"CREATE TRIGGER deadly AFTER INSERT ON delayq_content WHEN NEW.body = X'02' BEGIN SELECT RAISE(ROLLBACK, 'deadly'); END",
	} {
		_, err := db.Exec(trigger)
		must(t, err)
	}
	schedule := func(q backend.Queue, bodies ...byte) error {
		ms := make([]backend.Message, len(bodies))
		for i, b := range bodies {
			ms[i] = backend.Message{ID: fmt.Sprint(b), Body: []byte{b}, Delay: time.Hour}
		}
		return errors.Join(q.Schedule(t.Context(), ms)...)
	}

	tx, view := begin(t, db, q)
	must(t, schedule(view, 10))
	if err := schedule(view, 11, 1, 12); err == nil || !strings.Contains(err.Error(), "poison") {
		t.Errorf("a call with a message that the file rejects: %v", err)
	}
	must(t, schedule(view, 13)) // a failed call has left nothing
	must(t, tx.Commit())
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 3 {
		t.Errorf("stored: %+v, %v; want 3 messages", s, err)
	}

	tx, view = begin(t, db, q)
	must(t, schedule(view, 20))
	if err := schedule(view, 2); err == nil || !strings.Contains(err.Error(), "deadly") {
		t.Errorf("a call that rolls back: %v", err)
	}
	if err := schedule(view, 21); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("a call after SQLite has rolled back: %v", err)
	}
	if tx.Commit() == nil {
		t.Error("a transaction that SQLite has rolled back was committed")
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 3 {
		t.Errorf("stored: %+v, %v; want 3 messages", s, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	_, view = begin(t, db, q)
	cancel()
	if err := errors.Join(view.Schedule(ctx, []backend.Message{{ID: "late"}})...); !errors.Is(err, context.Canceled) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("a call whose context has ended: %v", err)
	}
}

// A transaction that has read before it writes cannot write any more when others have. The error
// says what to do.
func TestTransactionThatReadFirst(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(100)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	tx, view := begin(t, db, q)
	var n int
	must(t, tx.QueryRow("SELECT count(*) FROM delayq_message").Scan(&n))
	mustPush(t, q, "other", time.Hour)
	if err := push(view, "mine", time.Hour); !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "BEGIN IMMEDIATE") {
		t.Errorf("a push after a read: %v", err)
	}
	must(t, tx.Rollback())
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 1 {
		t.Errorf("stored: %+v, %v", s, err)
	}
}

// The file may be named by another path, such as a link. Another file is refused, though it has the
// same tables.
func TestTransactionOfAnotherFile(t *testing.T) {
	path, other := newFile(t), newFile(t)
	q := open(t, path)
	mustPush(t, open(t, other), "far", time.Hour)
	for name, at := range map[string]string{"another file": other, "memory": ":memory:"} {
		db, err := sql.Open("sqlite3", at)
		must(t, err)
		tx, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		view, err := q.InTx(tx)
		must(t, err)
		if err := push(view, "m", 0); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "another file") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, errors.Join(tx.Commit(), db.Close()))
	}
	link := newFile(t)
	must(t, os.Symlink(path, link))
	tx, view := begin(t, database(t, link), q)
	must(t, push(view, "m", time.Hour))
	must(t, tx.Commit())
}

// transactEver changes the queue and a table of the user's together, until it is killed.
func transactEver(path string, q backend.Queue) error {
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=synchronous(full)&_pragma=busy_timeout(60000)")
	if err != nil {
		return err
	}
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := transactOnce(db, q, fmt.Sprintf("%d-%d", os.Getpid(), i)); err != nil {
			return err
		}
	}
}

// transactOnce stores an order with its message, and removes an older one with its message.
func transactOnce(db *sql.DB, q backend.Queue, id string) error {
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	view, err := q.InTx(tx)
	if err != nil {
		return err
	}
	if err := push(view, id, time.Hour); err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO orders VALUES (?)", id); err != nil {
		return err
	}
	var old string
	if err := tx.QueryRow("SELECT id FROM orders WHERE id <> ? ORDER BY random() LIMIT 1", id).Scan(&old); err == nil && rand.IntN(3) == 0 {
		if _, err := tx.Exec("DELETE FROM orders WHERE id = ?", old); err != nil {
			return err
		}
		if err := errors.Join(view.Cancel(ctx, []string{old})...); err != nil {
			return err
		}
	}
	if rand.IntN(4) == 0 {
		say("rolled", id)
		return nil
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	say("committed", id)
	return nil
}

// TestTransactionsAgree kills processes in their transactions, two at a time on one file. Each order
// that is there has its message, and no message is without its order.
func TestTransactionsAgree(t *testing.T) {
	path := newFile(t)
	committed, rolled := make(map[string]bool), make(map[string]bool)
	hear := func(line string) {
		switch word, id, _ := strings.Cut(line, " "); word {
		case "committed":
			committed[id] = true
		case "rolled":
			rolled[id] = true
		}
	}
	for round := range 6 {
		ps := []*process{start(t, "transact", path), start(t, "transact", path)}
		for i, p := range ps {
			for range 20 * (1 + i + round) {
				hear(p.line(t))
			}
			_ = p.cmd.Process.Kill()
			for p.out.Scan() {
				hear(p.out.Text())
			}
		}
	}
	q := open(t, path)
	orders := make(map[string]bool)
	rows, err := database(t, path).Query("SELECT id FROM orders")
	must(t, err)
	for rows.Next() {
		var id string
		must(t, rows.Scan(&id))
		orders[id] = true
		if rolled[id] {
			t.Errorf("order %s was rolled back and is there", id)
		}
	}
	must(t, errors.Join(rows.Err(), rows.Close()))
	messages := 0
	for cursor := ""; ; {
		page, next, err := q.Peek(t.Context(), cursor, 1000)
		must(t, err)
		for _, m := range page {
			messages++
			if !orders[m.ID] {
				t.Errorf("message %s has no order", m.ID)
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	if messages != len(orders) || len(committed) == 0 || len(rolled) == 0 {
		t.Errorf("%d messages and %d orders; %d commits and %d rollbacks", messages, len(orders), len(committed), len(rolled))
	}
	t.Logf("%d commits, %d rollbacks, 12 kills: %d orders, each with its message", len(committed), len(rolled), messages)
	mustBeWhole(t, path)
}

// The error of a transaction that may only read says so, and the transaction goes on.
func TestReadOnlyTransaction(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	tx, err := database(t, path).BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	must(t, err)
	view, err := q.InTx(tx)
	must(t, err)
	if err := push(view, "m", time.Hour); err == nil || !strings.Contains(err.Error(), "begin one that may write") {
		t.Errorf("a push in a transaction that may only read: %v", err)
	}
	must(t, tx.Commit())
}

// A contextThatEnds ends when it is asked for the last time.
type contextThatEnds struct {
	context.Context //nolint:containedctx // the type wraps a context
	end             context.CancelFunc
	left            atomic.Int64
}

func (c *contextThatEnds) Done() <-chan struct{} {
	if c.left.Add(-1) == 0 {
		c.end()
	}
	return c.Context.Done()
}

// A call whose context ends has left nothing, at whichever of its statements that is, though the
// caller commits all the same.
func TestContextEndsInTransaction(t *testing.T) {
	path := newFile(t)
	q := open(t, path)
	db := database(t, path)
	failed := 0
	for asked := int64(1); ; asked++ {
		tx, view := begin(t, db, q)
		inner, end := context.WithCancel(t.Context())
		ctx := &contextThatEnds{Context: inner, end: end}
		ctx.left.Store(asked)
		err := errors.Join(view.Schedule(ctx, []backend.Message{{ID: "a", Delay: time.Hour}, {ID: "b", Delay: time.Hour}})...)
		end()
		_ = tx.Commit() // it fails where SQLite has rolled back the transaction
		if err == nil {
			break
		}
		failed++
		if s, statsErr := q.Stats(t.Context()); statsErr != nil || s.Scheduled != 0 {
			t.Fatalf("asked for the %d. time the context has ended: the push returned %v, and %d messages are stored, %v", asked, err, s.Scheduled, statsErr)
		}
	}
	if failed < 5 {
		t.Errorf("the context has ended in %d calls only", failed)
	}
}

// A message without headers has the same row, wherever it was pushed.
func TestRowsOfTransaction(t *testing.T) {
	path := newFile(t)
	q, db := open(t, path), database(t, path)
	must(t, push(q, "by the queue", time.Hour))
	tx, view := begin(t, db, q)
	must(t, push(view, "by a view", time.Hour))
	must(t, tx.Commit())
	var n, none int
	must(t, db.QueryRowContext(t.Context(), "SELECT count(*), count(*) FILTER (WHERE headers IS NULL) FROM delayq_content").Scan(&n, &none))
	if n != 2 || none != 2 {
		t.Errorf("%d of %d rows have no headers, want both", none, n)
	}
}

func TestNilTransaction(t *testing.T) {
	q := open(t, newFile(t))
	for _, tx := range []any{nil, (*sql.Tx)(nil)} {
		if _, err := q.InTx(tx); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("InTx(%T) returned %v", tx, err)
		}
	}
}
