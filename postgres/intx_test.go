package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// A tx is a transaction of one of the drivers.
type tx struct {
	any
	exec             func(statement string) error
	commit, rollback func() error
}

func beginPgx(t *testing.T, p *pgxpool.Pool, o pgx.TxOptions) tx {
	t.Helper()
	begun, err := p.BeginTx(t.Context(), o)
	must(t, err)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { _ = begun.Rollback(ctx) })
	return tx{
		begun, func(s string) error { _, err := begun.Exec(ctx, s); return err },
		func() error { return begun.Commit(ctx) }, func() error { return begun.Rollback(ctx) },
	}
}

func beginSQL(t *testing.T, db *sql.DB) tx {
	t.Helper()
	begun, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	return tx{
		begun, func(s string) error { _, err := begun.ExecContext(t.Context(), s); return err },
		begun.Commit, begun.Rollback,
	}
}

func inTx(t *testing.T, q backend.Queue, tx any) backend.Queue {
	t.Helper()
	view, err := q.InTx(tx)
	must(t, err)
	return view
}

// Both kinds of backends take transactions of both drivers.
func TestTransactionsOfBothDrivers(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	db := stdlib.OpenDBFromPool(p)
	t.Cleanup(func() { _ = db.Close() })
	for name, q := range map[string]backend.Queue{
		"New":   opened(t, postgres.New(p, fresh())),
		"NewDB": opened(t, postgres.NewDB(db, fresh())),
	} {
		for driver, tx := range map[string]tx{"pgx": beginPgx(t, p, pgx.TxOptions{}), "database/sql": beginSQL(t, db)} {
			ms := pushes(3, driver, 0)
			ms[1].Headers = map[string]string{"a": `{"b\`}
			none(t, inTx(t, q, tx.any).Schedule(t.Context(), ms))
			must(t, tx.commit())
			ds, err := q.Receive(t.Context(), 3, time.Minute)
			if err != nil || len(ds) != 3 || ds[1].Headers["a"] != `{"b\` {
				t.Errorf("%s, %s: received %+v, %v", name, driver, ds, err)
			}
		}
	}
}

// TestCommitWakes has workers of two backends look every ten seconds: only the notification of the
// commit can wake them sooner.
func TestCommitWakes(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	prefix, seldom := fresh(), postgres.Poll(10*time.Second)
	q := opened(t, postgres.New(p, prefix, seldom))
	for name, worker := range map[string]backend.Queue{"the same backend": q, "another": opened(t, postgres.New(p, prefix, seldom))} {
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
			time.Sleep(100 * time.Millisecond) // it waits by then, or the push is found at its first look
			tx := beginPgx(t, p, pgx.TxOptions{})
			none(t, inTx(t, q, tx.any).Schedule(t.Context(), pushes(1, "m", 0)))
			select {
			case err := <-got:
				t.Fatalf("handed out before the commit, %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			committed := time.Now()
			must(t, tx.commit())
			must(t, <-got)
			slowest = max(slowest, time.Since(committed))
		}
		t.Logf("%s: the slowest of 10 was received and acknowledged %v after its commit", name, slowest)
		if slowest > 5*time.Second {
			t.Errorf("%s: a commit did not wake the worker", name)
		}
	}
}

// TestTransactionThatFailed makes calls in transactions that cannot go on.
func TestTransactionThatFailed(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	other, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "other.db"))
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })

	failed := beginPgx(t, p, pgx.TxOptions{})
	if failed.exec("SELECT 1/0") == nil {
		t.Error("the division did not fail")
	}
	closed := beginPgx(t, p, pgx.TxOptions{})
	must(t, closed.rollback())
	lost := beginPgx(t, p, pgx.TxOptions{})
	if lost.exec("SELECT pg_terminate_backend(pg_backend_pid())") == nil {
		t.Error("the connection did not end")
	}
	elsewhere := beginSQL(t, other)
	t.Cleanup(func() { _ = elsewhere.rollback() })
	for name, c := range map[string]struct {
		tx   tx
		is   error
		says string
	}{
		"failed before": {failed, nil, "roll it back"},
		"over":          {closed, backend.ErrInvalid, "over"},
		"no connection": {lost, backend.ErrUnavailable, "transaction"},
		"read-only":     {beginPgx(t, p, pgx.TxOptions{AccessMode: pgx.ReadOnly}), nil, "begin one that may write"},
		"SQLite":        {elsewhere, backend.ErrInvalid, "of another database"},
	} {
		errs := inTx(t, q, c.tx.any).Schedule(t.Context(), pushes(1, "m", 0))
		if len(errs) != 1 || errs[0] == nil || c.is != nil && !errors.Is(errs[0], c.is) || !strings.Contains(errs[0].Error(), c.says) || errors.Is(errs[0], backend.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", name, errs)
		}
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Ready != 0 {
		t.Errorf("stored: %+v, %v", s, err)
	}
}

// A transaction that waits for another one ends with its context, and has changed nothing.
func TestTransactionWaitsForAnother(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	first, second := beginPgx(t, p, pgx.TxOptions{}), beginPgx(t, p, pgx.TxOptions{})
	none(t, inTx(t, q, first.any).Schedule(t.Context(), pushes(1, "m", time.Hour)))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := errors.Join(inTx(t, q, second.any).Schedule(ctx, pushes(1, "m", time.Hour))...)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("the waiting push returned %v", err)
	}
	third := beginPgx(t, p, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, third.exec("SELECT 1 FROM pg_class")) // its snapshot is from before the commit
	must(t, first.commit())
	if err := errors.Join(inTx(t, q, third.any).Schedule(t.Context(), pushes(1, "m", time.Hour))...); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("a push that cannot be serialized returned %v", err)
	}
	if err := errors.Join(q.Schedule(t.Context(), pushes(1, "m", 0))...); !errors.Is(err, backend.ErrDuplicate) {
		t.Errorf("the push after the commit returned %v", err)
	}
}

// TestHandlerAcknowledgesInTransaction has handlers roll back at the first attempt, and commit at the
// second. Each message takes effect once, is retried without waiting for its lease, and the log has
// no word of lost leases.
func TestHandlerAcknowledgesInTransaction(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	var said locked
	b := postgres.New(p, fresh())
	t.Cleanup(func() { _ = b.Close() })
	q, err := delayq.New(t.Context(), "q", delayq.WithBackend(b),
		delayq.WithLogger(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))), delayq.WithLease(time.Hour))
	must(t, err)
	t.Cleanup(func() { _ = q.Close() })
	const messages = 50
	_, err = q.PushBatch(t.Context(), make([]delayq.Message, messages))
	must(t, err)
	_, err = p.Exec(t.Context(), "CREATE TABLE effects (id text, attempt int)")
	must(t, err)
	errFirst := errors.New("the first attempt")
	handle := func(ctx context.Context, d *delayq.Delivery) error {
		tx, err := p.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if _, err := tx.Exec(ctx, "INSERT INTO effects VALUES ($1, $2)", d.ID, d.Attempt); err != nil {
			return err
		}
		in, err := delayq.InTx(q, tx)
		if err != nil {
			return err
		}
		if err := in.Ack(ctx, d); err != nil {
			return err
		}
		if err := in.Ack(ctx, d); !errors.Is(err, delayq.ErrLeaseLost) {
			t.Errorf("the second Ack returned %v", err)
		}
		if d.Attempt == 1 {
			return errFirst
		}
		return tx.Commit(ctx)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Consume(ctx, handle, delayq.Workers(4), delayq.Retry(delayq.Delays{time.Millisecond}))
	}()
	await(t, "all effects", func() bool {
		var n, second int
		must(t, p.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE attempt = 2) FROM effects").Scan(&n, &second))
		if n > messages || second != n {
			t.Fatalf("%d effects, %d of the second attempt", n, second)
		}
		return n == messages
	})
	stop()
	must(t, <-ended)
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled+s.Ready+s.InFlight+s.Dead != 0 {
		t.Errorf("left: %+v, %v", s, err)
	}
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, errFirst.Error()) {
			t.Error(line)
		}
	}
}

// locked is a buffer for several goroutines.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A transaction with an old snapshot does not see that a lease was renewed. That is no lost lease: the
// call fails as serializations do, and the same in a new transaction succeeds.
func TestOldSnapshotOfLease(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		none(t, q.Schedule(t.Context(), pushes(1, "m", 0)))
		ds, err := q.Receive(t.Context(), 1, 10*time.Second) // long enough for the calls before its end
		must(t, err)
		leases := []backend.Lease{ds[0].Lease()}
		old := beginPgx(t, p, pgx.TxOptions{IsoLevel: level})
		must(t, old.exec("SELECT 1 FROM pg_class"))
		_, errs := q.Extend(t.Context(), leases, time.Minute)
		none(t, errs)
		await(t, "the end of the lease in the snapshot", func() bool { return time.Now().After(ds[0].Until) })
		if err := errors.Join(inTx(t, q, old.any).Ack(t.Context(), leases)...); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("%s: Ack by an old snapshot returned %v", level, err)
		}
		must(t, old.rollback())
		anew := beginPgx(t, p, pgx.TxOptions{IsoLevel: level})
		none(t, inTx(t, q, anew.any).Ack(t.Context(), leases))
		must(t, anew.commit())
	}
}

// A transaction with an old snapshot does not see a message that was pushed after it. Nor is its lease
// lost: the call fails as serializations do, and leaves nothing. A lease that is surely lost still is.
func TestAckByASnapshotOlderThanTheMessage(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		none(t, q.Schedule(t.Context(), pushes(1, "done", 0)))
		done, err := q.Receive(t.Context(), 1, time.Minute)
		must(t, err)
		none(t, q.Ack(t.Context(), []backend.Lease{done[0].Lease()}))

		old := beginPgx(t, p, pgx.TxOptions{IsoLevel: level})
		must(t, old.exec("SELECT 1 FROM pg_class"))
		none(t, q.Schedule(t.Context(), pushes(1, "new", 0)))
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		must(t, err)
		view := inTx(t, q, old.any)
		if errs := view.Ack(t.Context(), []backend.Lease{done[0].Lease()}); !errors.Is(errs[0], backend.ErrLeaseLost) {
			t.Errorf("%s: Ack of a message that was done before the snapshot returned %v", level, errs[0])
		}
		if err := errors.Join(view.Ack(t.Context(), []backend.Lease{ds[0].Lease()})...); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrLeaseLost) {
			t.Errorf("%s: Ack by a snapshot older than the message returned %v", level, err)
		}
		must(t, old.rollback())
		anew := beginPgx(t, p, pgx.TxOptions{IsoLevel: level})
		none(t, inTx(t, q, anew.any).Ack(t.Context(), []backend.Lease{ds[0].Lease()}))
		if errs := inTx(t, q, anew.any).Ack(t.Context(), []backend.Lease{done[0].Lease()}); !errors.Is(errs[0], backend.ErrLeaseLost) {
			t.Errorf("%s: a second Ack returned %v", level, errs[0])
		}
		must(t, anew.commit())
		var left int
		must(t, p.QueryRow(t.Context(), "SELECT count(*) FROM "+name+"messages").Scan(&left))
		if left != 0 {
			t.Errorf("%s: %d rows are left", level, left)
		}
	}
}

// A call while the caller reads rows of the same transaction says what is wrong, and sends nothing.
func TestTransactionInUse(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	for _, checked := range []bool{false, true} {
		begun := beginPgx(t, p, pgx.TxOptions{})
		view := inTx(t, q, begun.any)
		if checked {
			none(t, view.Schedule(t.Context(), pushes(1, "first", time.Hour)))
		}
		rows, err := begun.any.(pgx.Tx).Query(t.Context(), "SELECT generate_series(1, 3)")
		must(t, err)
		err = errors.Join(view.Schedule(t.Context(), pushes(1, "m", time.Hour))...)
		rows.Close()
		if err == nil || !strings.Contains(err.Error(), "in use") || errors.Is(err, backend.ErrInvalid) || errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("checked: %v: a push while rows are read returned %v", checked, err)
		}
		_ = begun.rollback() // pgx may have given up the connection
	}
}

func TestNilTransaction(t *testing.T) {
	t.Parallel()
	q := opened(t, postgres.New(pool(t, testenv.SharedPostgres(t).URL()), fresh()))
	for _, tx := range []any{nil, (*pgxpool.Tx)(nil), (*sql.Tx)(nil)} {
		if _, err := q.InTx(tx); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("InTx(%T) returned %v", tx, err)
		}
	}
}

// The server ends transactions that idle for too long. Run again they may succeed.
func TestTransactionIdlesTooLong(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	idle := beginPgx(t, p, pgx.TxOptions{})
	pid := idle.any.(pgx.Tx).Conn().PgConn().PID()
	must(t, idle.exec("SET LOCAL idle_in_transaction_session_timeout = 50"))
	await(t, "the end of the connection", func() bool {
		var there bool
		must(t, p.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid).Scan(&there))
		return !there
	})
	if err := errors.Join(inTx(t, q, idle.any).Schedule(t.Context(), pushes(1, "m", 0))...); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("a push in a transaction that has ended returned %v", err)
	}
}

// A message that is neither stored nor a duplicate, as others store and delete its id meanwhile, gets
// an error. A trigger that keeps rows out makes the server find that each time.
func TestPushNeverStoredNorDuplicate(t *testing.T) {
	t.Parallel()
	p, prefix := pool(t, testenv.SharedPostgres(t).URL()), freshName()
	q := opened(t, postgres.New(p, postgres.Prefix(prefix)))
	_, err := p.Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION %[1]sout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER out BEFORE INSERT ON %[1]smessages FOR EACH ROW WHEN (NEW.id = 'm-000001') EXECUTE FUNCTION %[1]sout()`, prefix))
	must(t, err)
	errs := q.Schedule(t.Context(), pushes(3, "m", time.Hour))
	if len(errs) != 3 || !errors.Is(errs[1], backend.ErrUnavailable) {
		t.Errorf("the pushes returned %v", errs)
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 0 {
		t.Errorf("stored: %+v, %v", s, err)
	}
}

// TestTransactionOnAnotherServer uses a transaction of another server, whose database has the same
// number and the same tables.
func TestTransactionOnAnotherServer(t *testing.T) {
	t.Parallel()
	here, there := pool(t, testenv.Postgres(t).URL()), pool(t, testenv.Postgres(t).URL())
	q := opened(t, postgres.New(here))
	opened(t, postgres.New(there))
	number := func(p *pgxpool.Pool) (oid uint32) {
		must(t, p.QueryRow(t.Context(), "SELECT oid FROM pg_database WHERE datname = current_database()").Scan(&oid))
		return oid
	}
	if a, b := number(here), number(there); a != b {
		t.Fatalf("the databases have the numbers %d and %d; the test wants them to be equal", a, b)
	}
	tx := beginPgx(t, there, pgx.TxOptions{})
	errs := inTx(t, q, tx.any).Schedule(t.Context(), pushes(1, "m", 0))
	if len(errs) != 1 || !errors.Is(errs[0], backend.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", errs)
	}
	must(t, tx.commit())
	var n int
	must(t, there.QueryRow(t.Context(), "SELECT count(*) FROM delayq_messages").Scan(&n))
	if n != 0 {
		t.Errorf("%d messages on the other server", n)
	}
}

// TestPlaceWithoutRights has a user that may not ask the server for its identifier. Transactions on the
// queue's database are told from others by the number of the table.
func TestPlaceWithoutRights(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(testenv.SharedPostgres(t).URL())
	must(t, err)
	admins := pool(t, at.String())
	role := freshName()
	exec(t, admins, "CREATE ROLE "+role+" LOGIN")
	in := func(database, user string) *pgxpool.Pool {
		u := *at
		u.Path, u.User = "/"+database, url.User(user)
		return pool(t, u.String())
	}
	for _, name := range []string{role + "ours", role + "theirs"} {
		exec(t, admins, "CREATE DATABASE "+name+" OWNER "+role)
		exec(t, in(name, "postgres"), "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC; GRANT CREATE ON SCHEMA public TO "+role)
	}
	ours, theirs := in(role+"ours", role), in(role+"theirs", role)
	q := opened(t, postgres.New(ours))
	opened(t, postgres.New(theirs)) // with tables of the same name

	for name, p := range map[string]*pgxpool.Pool{"the user": ours, "another user": in(role+"ours", "postgres")} {
		tx := beginPgx(t, p, pgx.TxOptions{})
		none(t, inTx(t, q, tx.any).Schedule(t.Context(), pushes(1, name, time.Hour)))
		must(t, tx.commit())
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 2 {
		t.Errorf("%+v, %v; want two messages", s, err)
	}
	for name, p := range map[string]*pgxpool.Pool{"a database with such tables": theirs, "one without": admins} {
		tx := beginPgx(t, p, pgx.TxOptions{})
		errs := inTx(t, q, tx.any).Schedule(t.Context(), pushes(1, "refused", 0))
		if len(errs) != 1 || !errors.Is(errs[0], backend.ErrInvalid) || !strings.Contains(errs[0].Error(), "of another database") {
			t.Errorf("%s: got %v", name, errs)
		}
		if err := tx.exec("SELECT 1"); err != nil {
			t.Errorf("%s: the transaction does not go on: %v", name, err)
		}
	}
}

// TestDoneMessageKeepsItsIDAlone wants nothing of a message in its row while UniqueFor keeps the id:
// its content may be large, and secret.
func TestDoneMessageKeepsItsIDAlone(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	for how, end := range map[string]func(backend.Lease) []error{
		"ack": func(l backend.Lease) []error { return q.Ack(t.Context(), []backend.Lease{l}) },
		"cancel": func(l backend.Lease) []error {
			none(t, q.Nack(t.Context(), []backend.Return{{Lease: l, Delay: time.Hour}}))
			return q.Cancel(t.Context(), []string{l.ID})
		},
		"delete": func(l backend.Lease) []error {
			none(t, q.Dead(t.Context(), []backend.DeadLetterRequest{{Lease: l, Reason: "secret"}}))
			return q.DeleteDead(t.Context(), []string{l.ID})
		},
		"trim": func(l backend.Lease) []error {
			none(t, q.Dead(t.Context(), []backend.DeadLetterRequest{{Lease: l, Reason: "secret"}}))
			await(t, "an age of the dead letter", func() bool {
				n, _, err := q.TrimDead(t.Context(), backend.Retention{MaxAge: time.Millisecond})
				must(t, err)
				return n == 1
			})
			return nil
		},
	} {
		m := backend.Message{ID: how, UniqueFor: time.Hour, Body: []byte("secret"), Headers: map[string]string{"k": "secret"}}
		none(t, q.Schedule(t.Context(), []backend.Message{m}))
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		must(t, err)
		none(t, end(ds[0].Lease()))
		var state, length int
		var headers, reason []byte
		var token *int64
		must(t, p.QueryRow(t.Context(), "SELECT state, octet_length(body), headers, reason, token FROM "+name+"messages WHERE id = $1", how).
			Scan(&state, &length, &headers, &reason, &token))
		if state != 3 || length != 0 || headers != nil || reason != nil || token != nil {
			t.Errorf("%s leaves state %d, %d bytes, headers %q, reason %q, token %v", how, state, length, headers, reason, token)
		}
	}
}

// TestTransactionOfAnotherDatabase has a transaction of another database of the same server, with the
// same tables.
func TestTransactionOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(testenv.SharedPostgres(t).URL())
	must(t, err)
	here, name := pool(t, at.String()), freshName()
	exec(t, here, "CREATE DATABASE "+name)
	at.Path = "/" + name
	there, prefix := pool(t, at.String()), fresh()
	q := opened(t, postgres.New(here, prefix))
	other := opened(t, postgres.New(there, prefix))
	tx := beginPgx(t, there, pgx.TxOptions{})
	if errs := inTx(t, q, tx.any).Schedule(t.Context(), pushes(1, "m", 0)); len(errs) != 1 || !errors.Is(errs[0], backend.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", errs)
	}
	must(t, tx.commit())
	if s, err := other.Stats(t.Context()); err != nil || s.Ready+s.Scheduled != 0 {
		t.Errorf("the other database has %+v, %v", s, err)
	}
}
