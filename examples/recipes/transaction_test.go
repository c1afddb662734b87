package recipes_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/sqlite"
)

// ledger keeps orders in a database, and their timers in a queue in the same database.
type ledger struct {
	db    *sql.DB
	queue delayq.Queue
}

// inTx runs do in a transaction that both the tables and the queue are part of.
func (l *ledger) inTx(ctx context.Context, do func(*sql.Tx, delayq.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	in, err := delayq.InTx(l.queue, tx)
	if err != nil {
		return err
	}
	if err := do(tx, in); err != nil {
		return err
	}
	return tx.Commit()
}

// place stores an order and sets its timer: both, or neither.
func (l *ledger) place(ctx context.Context, order string, timeout time.Duration) error {
	return l.inTx(ctx, func(tx *sql.Tx, in delayq.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?, 'unpaid')", order); err != nil {
			return err
		}
		_, err := in.Push(ctx, []byte(order), delayq.ID(timerOf(order)), delayq.After(timeout))
		return err
	})
}

// pay stores a payment and stops the timer: both, or neither.
func (l *ledger) pay(ctx context.Context, order string) error {
	return l.inTx(ctx, func(tx *sql.Tx, in delayq.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE id = ?", order); err != nil {
			return err
		}
		return in.Cancel(ctx, timerOf(order)) // ErrInFlight and ErrNotFound: the timer was faster
	})
}

// expire handles a timer. The order is cancelled and the message is done: both, or neither.
func (l *ledger) expire(ctx context.Context, d *delayq.Delivery) error {
	return l.inTx(ctx, func(tx *sql.Tx, in delayq.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'cancelled' WHERE id = ?", string(d.Body)); err != nil {
			return err
		}
		return in.Ack(ctx, d)
	})
}

// The orders and their timers are in one SQLite file. With PostgreSQL the same code has a *sql.DB or
// a pgxpool.Pool on the database of the queue.
func Example_transaction() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.db")

	b := sqlite.New(file)
	defer b.Close()
	q, err := delayq.New(ctx, "orders", delayq.WithBackend(b))
	check(err)
	defer q.Close()
	db, err := sql.Open("sqlite3", "file:"+file+"?_txlock=immediate")
	check(err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT)")
	check(err)

	l := &ledger{db, q}
	check(l.place(ctx, "17", time.Hour))
	fmt.Println("placed twice:", l.place(ctx, "17", time.Hour) != nil)
	check(l.pay(ctx, "17"))
	check(l.place(ctx, "18", 0))
	ctx, stop := context.WithCancel(ctx)
	check(q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		defer stop()
		return l.expire(ctx, d)
	}))

	for _, order := range []string{"17", "18"} {
		var state string
		check(db.QueryRow("SELECT state FROM orders WHERE id = ?", order).Scan(&state))
		fmt.Println(order, state)
	}
	stats, err := q.Stats(context.Background())
	check(err)
	fmt.Println("messages:", stats.Scheduled+stats.Ready+stats.InFlight)
	// Output:
	// placed twice: true
	// 17 paid
	// 18 cancelled
	// messages: 0
}
