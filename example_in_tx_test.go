package delayq_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/sqlite"
)

// An order and the message that is to cancel it are stored in one transaction. The first one is
// rolled back, and leaves neither.
func ExampleInTx() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.db")
	b := sqlite.New(file)
	defer b.Close()
	q, err := delayq.New(ctx, "orders", delayq.WithBackend(b))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	db, err := sql.Open("sqlite3", "file:"+file+"?_txlock=immediate")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY)"); err != nil {
		panic(err)
	}

	place := func(order string, last error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after the commit
		if _, err := tx.Exec("INSERT INTO orders VALUES (?)", order); err != nil {
			return err
		}
		in, err := delayq.InTx(q, tx)
		if err != nil {
			return err
		}
		if _, err := in.Push(ctx, []byte(order), delayq.After(30*time.Minute)); err != nil {
			return err
		}
		if last != nil {
			return last
		}
		return tx.Commit()
	}
	fmt.Println(place("17", errors.New("the card was declined")))
	fmt.Println(place("18", nil))

	var orders int
	if err := db.QueryRow("SELECT count(*) FROM orders").Scan(&orders); err != nil {
		panic(err)
	}
	stats, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d order, %d message\n", orders, stats.Scheduled)
	// Output:
	// the card was declined
	// <nil>
	// 1 order, 1 message
}
