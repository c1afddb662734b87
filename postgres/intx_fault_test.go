package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// How a transaction of TestTransactionsAgree ends.
type fate int

const (
	commits     fate = iota
	rollsBack        // says ROLLBACK
	leaves           // closes the connection before COMMIT
	cutBefore        // its connection breaks before COMMIT is sent
	cutAfter         // its connection breaks when COMMIT is sent, before the reply
	terminated       // the server ends the connection at the time of COMMIT
	countsFates      // how many there are
)

var fateNames = [...]string{"commit", "rollback", "connection closed", "cut before COMMIT", "cut after COMMIT", "terminated at COMMIT"}

// A cutConn is a connection that breaks at a write when it is armed.
type cutConn struct {
	net.Conn
	armed *atomic.Int64 // the fate; 0 for none
}

func (c *cutConn) Write(p []byte) (int, error) {
	switch fate(c.armed.Load()) {
	case cutBefore:
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	case cutAfter:
		n, err := c.Conn.Write(p)
		_ = c.Conn.Close()
		return n, err
	default:
		return c.Conn.Write(p)
	}
}

// agreement is a queue and a table of the user, which transactions change together.
type agreement struct {
	t    *testing.T
	url  string
	p    *pgxpool.Pool
	q    delayq.Queue
	held map[string]*delayq.Delivery

	mu    sync.Mutex
	ended map[fate]int
	told  map[string]bool // the commit returned nil
}

// The kinds of what a transaction does. Each order has a row with a state and a due time.
var kinds = []string{"push", "cancel", "move", "replace", "ack"}

func (a *agreement) id(kind string, i int) string { return fmt.Sprintf("%s-%d", kind, i) }

// TestTransactionsAgree has transactions change the queue and a table of the user's, and end at
// random: committed, rolled back, or by losing their connection in COMMIT. In each of them both have
// changed, or neither.
func TestTransactionsAgree(t *testing.T) {
	t.Parallel()
	transactions := 400
	if testenv.Runs(t, testenv.Nightly) {
		transactions = 10_000
	}
	a := newAgreement(t, transactions)
	began := time.Now()
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 22))
			for i := int(next.Add(1)) - 1; i < transactions; i = int(next.Add(1)) - 1 {
				a.one(kinds[i%len(kinds)], i, fate(random.IntN(int(countsFates))), random.IntN(2) == 0)
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	await(t, "transactions that lost their connections to end", func() bool {
		var open int
		must(t, a.p.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'agreement'").Scan(&open))
		return open == 0
	})
	happened := a.compare(transactions)
	for f := range countsFates {
		t.Logf("%5d %s: %d took place", a.ended[f], fateNames[f], happened[f])
	}
	t.Logf("%d transactions in %v", transactions, took.Round(time.Millisecond))
	switch {
	case happened[commits] != a.ended[commits]:
		t.Errorf("%d of %d commits took place", happened[commits], a.ended[commits])
	case happened[rollsBack]+happened[leaves]+happened[cutBefore] > 0:
		t.Error("a transaction took place that was not committed")
	case happened[cutAfter] == 0 || happened[terminated] == a.ended[terminated]:
		t.Error("no connection was lost at the right time: the test shows nothing")
	}
}

// newAgreement fills the queue and the table with what the transactions will change.
func newAgreement(t *testing.T, transactions int) *agreement {
	t.Helper()
	server := testenv.Postgres(t)
	a := &agreement{t: t, url: server.URL(), p: pool(t, server.URL()), held: make(map[string]*delayq.Delivery), ended: make(map[fate]int), told: make(map[string]bool)}
	var err error
	b := postgres.New(a.p)
	t.Cleanup(func() { _ = b.Close() })
	a.q, err = delayq.New(t.Context(), "orders", delayq.WithBackend(b), delayq.WithLease(24*time.Hour), delayq.WithLogger(quiet.Logger))
	must(t, err)
	t.Cleanup(func() { _ = a.q.Close() })
	_, err = a.p.Exec(t.Context(), "CREATE TABLE orders (id text PRIMARY KEY, state text NOT NULL, fate int NOT NULL DEFAULT 0)")
	must(t, err)
	var ms []delayq.Message
	acks := 0
	for i := range transactions {
		m := delayq.Message{ID: a.id(kinds[i%len(kinds)], i), Body: []byte("old"), Delay: time.Hour}
		switch kinds[i%len(kinds)] {
		case "push":
			continue
		case "ack":
			m.Delay = 0
			acks++
		}
		ms = append(ms, m)
		_, err := a.p.Exec(t.Context(), "INSERT INTO orders VALUES ($1, 'old')", m.ID)
		must(t, err)
	}
	for chunk := range slices.Chunk(ms, delayq.MaxBatch) {
		_, err := a.q.PushBatch(t.Context(), chunk)
		must(t, err)
	}
	for len(a.held) < acks {
		ds, err := a.q.ReceiveBatch(t.Context(), acks-len(a.held))
		must(t, err)
		for _, d := range ds {
			a.held[d.ID] = d
		}
	}
	return a
}

// one makes one transaction. Errors at its end are what the test is about; others fail it.
func (a *agreement) one(kind string, i int, f fate, std bool) {
	var armed atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg, err := pgx.ParseConfig(a.url)
	if err != nil {
		a.t.Error(err)
		return
	}
	cfg.RuntimeParams["application_name"] = "agreement"
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &cutConn{c, &armed}, err
	}
	if std {
		err = a.oneStd(ctx, cfg, kind, i, f, &armed)
	} else {
		err = a.onePgx(ctx, cfg, kind, i, f, &armed)
	}
	if err != nil {
		a.t.Errorf("%s, %s: %v", a.id(kind, i), fateNames[f], err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended[f]++
}

func (a *agreement) onePgx(ctx context.Context, cfg *pgx.ConnConfig, kind string, i int, f fate, armed *atomic.Int64) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	pid := conn.PgConn().PID()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	err = a.change(ctx, tx, kind, i, f, func(statement string, args ...any) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
	if err != nil {
		return err
	}
	switch f {
	case rollsBack:
		return tx.Rollback(ctx)
	case leaves:
		return conn.Close(ctx)
	default:
		return a.commit(ctx, a.id(kind, i), f, armed, pid, func() error { return tx.Commit(ctx) })
	}
}

func (a *agreement) oneStd(ctx context.Context, cfg *pgx.ConnConfig, kind string, i int, f fate, armed *atomic.Int64) error {
	db := stdlib.OpenDB(*cfg)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return err
	}
	var pid uint32
	if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	err = a.change(ctx, tx, kind, i, f, func(statement string, args ...any) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
	if err != nil {
		return err
	}
	if f == rollsBack || f == leaves {
		return tx.Rollback()
	}
	return a.commit(ctx, a.id(kind, i), f, armed, pid, tx.Commit)
}

// change is what each transaction does, first with the table and then with the queue.
func (a *agreement) change(ctx context.Context, tx any, kind string, i int, f fate, exec func(string, ...any) error) error {
	id := a.id(kind, i)
	err := exec("INSERT INTO orders VALUES ($1, 'new', $2) ON CONFLICT (id) DO UPDATE SET state = 'new', fate = $2", id, int(f))
	if err != nil {
		return err
	}
	in, err := delayq.InTx(a.q, tx)
	if err != nil {
		return err
	}
	switch kind {
	case "push":
		_, err = in.Push(ctx, []byte("new"), delayq.ID(id), delayq.After(time.Hour))
	case "cancel":
		err = in.Cancel(ctx, id)
	case "move":
		err = in.RescheduleAfter(ctx, id, 100*time.Hour)
	case "replace":
		_, err = in.Push(ctx, []byte("new"), delayq.ID(id), delayq.After(time.Hour), delayq.Replace())
	default:
		err = in.Ack(ctx, a.held[id])
	}
	return err
}

// commit commits, and loses the connection where that is the fate: the error is then expected.
func (a *agreement) commit(ctx context.Context, id string, f fate, armed *atomic.Int64, pid uint32, commit func() error) error {
	armed.Store(int64(f))
	var killing sync.WaitGroup
	if f == terminated {
		killing.Go(func() {
			if _, err := a.p.Exec(ctx, "SELECT pg_terminate_backend($1)", pid); err != nil {
				a.t.Error(err)
			}
		})
	}
	err := commit()
	killing.Wait()
	switch {
	case f == commits && err != nil:
		return err
	case err == nil && f == cutBefore:
		return errors.New("the connection was not lost")
	case err == nil: // the reply may have come before the connection broke
		a.mu.Lock()
		defer a.mu.Unlock()
		a.told[id] = true
	}
	return nil
}

// compare compares the queue with the table, and returns how many transactions of each fate took
// place.
func (a *agreement) compare(transactions int) map[fate]int {
	a.t.Helper()
	states, fates := make(map[string]string), make(map[string]fate)
	rows, err := a.p.Query(a.t.Context(), "SELECT id, state, fate FROM orders")
	must(a.t, err)
	for rows.Next() {
		var id, state string
		var f fate
		must(a.t, rows.Scan(&id, &state, &f))
		states[id], fates[id] = state, f
	}
	must(a.t, rows.Err())
	ids := make([]string, transactions)
	for i := range ids {
		ids[i] = a.id(kinds[i%len(kinds)], i)
	}
	happened, kept := make(map[fate]int), make(map[string]int)
	infos, err := a.q.GetBatch(a.t.Context(), ids)
	var missing *delayq.BatchError
	if err != nil && !errors.As(err, &missing) {
		a.t.Fatal(err)
	}
	for i, id := range ids {
		there := missing == nil || missing.Errs[i] == nil
		took := map[string]bool{
			"push":    there,
			"cancel":  !there,
			"ack":     !there,
			"move":    there && time.Until(infos[i].Due) > 50*time.Hour,
			"replace": there && string(infos[i].Body) == "new",
		}[kinds[i%len(kinds)]]
		if took != (states[id] == "new") {
			a.t.Errorf("%s: the row is %q, and the message is there: %v, %s due %v", id, states[id], there, infos[i].Body, infos[i].Due)
		}
		if a.told[id] && !took {
			a.t.Errorf("%s: the commit returned nil and did not take place", id)
		}
		if took {
			happened[fates[id]]++
			kept[kinds[i%len(kinds)]]++
		}
	}
	a.t.Logf("%d commits returned nil", len(a.told))
	a.t.Logf("the queue and the table agree on %d transactions, of which took place %v", transactions, kept)
	return happened
}
