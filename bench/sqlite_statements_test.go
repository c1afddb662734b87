package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/ids"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/sqlite"
)

// fileStatements are those of package sqlite, run by hand by one goroutine on one connection.
type fileStatements struct {
	conn     *sqlite3.Conn
	prepared map[string]*sqlite3.Stmt
	next     int64 // a message's number
}

// ownFile returns an empty queue in a file, and the statements on it.
func ownFile(b *testing.B) (delayq.Queue, *fileStatements) {
	path := filepath.Join(b.TempDir(), "delay.db")
	store := sqlite.New(path)
	b.Cleanup(func() { _ = store.Close() })
	q, err := delayq.New(b.Context(), "queue", delayq.WithBackend(store))
	load.Must(b, err)
	conn, err := sqlite3.Open(path)
	load.Must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	load.Must(b, conn.Exec("PRAGMA synchronous = FULL; PRAGMA busy_timeout = 10000"))
	return q, &fileStatements{conn: conn, prepared: make(map[string]*sqlite3.Stmt), next: 1}
}

// run runs a statement of package sqlite, and calls row for each row.
func (s *fileStatements) run(b *testing.B, name string, row func(*sqlite3.Stmt), args ...any) {
	stmt := s.prepared[name]
	if stmt == nil {
		text, err := os.ReadFile(filepath.Join("..", "sqlite", "sql", name+".sql"))
		load.Must(b, err)
		stmt, _, err = s.conn.Prepare(string(text))
		load.Must(b, err)
		s.prepared[name] = stmt
	}
	for i, a := range args {
		switch a := a.(type) {
		case int64:
			load.Must(b, stmt.BindInt64(1+i, a))
		case []byte:
			load.Must(b, stmt.BindBlob(1+i, a))
		case nil:
			load.Must(b, stmt.BindNull(1+i))
		}
	}
	for stmt.Step() {
		if row != nil {
			row(stmt)
		}
	}
	load.Must(b, stmt.Err())
	load.Must(b, stmt.Reset())
}

// in runs do in a transaction.
func (s *fileStatements) in(b *testing.B, do func()) {
	s.run(b, "begin", nil)
	do()
	s.run(b, "commit", nil)
}

const number = int64(1) // the queue's

// fill stores n messages, so many a transaction.
func (s *fileStatements) fill(b *testing.B, n, batch int, due time.Time) {
	for left := n; left > 0; left -= batch {
		s.in(b, func() {
			for range min(batch, left) {
				s.run(b, "insert_message", nil, number, record.PackID(nil, ids.New()), due.UnixNano(), s.next, int64(0))
				s.run(b, "insert_content", nil, s.next, nil, load.Body)
				s.next++
			}
		})
	}
}

// drain claims and acks n messages, so many a transaction.
func (s *fileStatements) drain(b *testing.B, n int) {
	type held struct {
		id      []byte
		content int64
	}
	for token := int64(1); n > 0; token++ {
		var claimed []held
		var lastAt, lastPlace int64
		s.in(b, func() {
			s.run(b, "select_due", func(r *sqlite3.Stmt) {
				lastAt, lastPlace = r.ColumnInt64(1), r.ColumnInt64(2)
				claimed = append(claimed, held{r.ColumnBlob(0, nil), r.ColumnInt64(4)})
				_ = r.ColumnBlob(6, []byte{})
			}, number, time.Now().UnixNano(), int64(statementBatch))
			s.run(b, "lease_due", nil, number, lastAt, lastPlace, time.Now().Add(time.Minute).UnixNano(), token)
		})
		s.in(b, func() {
			for _, h := range claimed {
				s.run(b, "ack", nil, number, h.id, token, h.content, time.Now().UnixNano())
				s.run(b, "delete_content", nil, h.content)
			}
		})
		n -= len(claimed)
	}
}

// BenchmarkSQLiteDrain measures 100,000 messages of 100 bytes that are due, in msgs/s.
//
//	consume        32 workers of one Consume
//	consume-batch  ReceiveBatch and AckBatch of 100 messages by four goroutines
//	statements     the statements by hand in one goroutine, 200 messages a transaction
//
// Goal for consume against statements: 0.5.
func BenchmarkSQLiteDrain(b *testing.B) {
	n := load.UnlessShort(100_000, 2_000)
	sides := load.NewRace()
	for range load.UnlessShort(5, 1) {
		for name, consume := range map[string]consumer{"consume": consume, "consume-batch": consumeBatches} {
			q, _ := ownFile(b)
			t := load.Burst(n, time.Now())
			load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 1)
			sides.Run(name, n, func() { consume(b, q, t)() })
		}
		_, s := ownFile(b)
		s.fill(b, n, 1000, time.Now())
		sides.Run("statements", n, func() { s.drain(b, n) })
	}
	reportRace(b, sides, "statements")
}

// BenchmarkSQLitePush measures pushes of 100 bytes, in msgs/s.
//
//	push        256 goroutines, a call a message
//	push-batch  four goroutines, 100 messages a call
//	statements  the statements by hand in one goroutine, 256 messages a transaction
//
// Goal for push against statements: 0.7.
func BenchmarkSQLitePush(b *testing.B) {
	n := load.UnlessShort(100_000, 2_000)
	sides := load.NewRace()
	for range load.UnlessShort(5, 1) {
		q, _ := ownFile(b)
		sides.Run("push", n, func() { load.Push(b, q, n, 256) })
		q, _ = ownFile(b)
		ms := load.Burst(n, time.Now().Add(time.Hour)).Messages()
		sides.Run("push-batch", n, func() { load.PushBatches(b, q, ms, 100, 4) })
		_, s := ownFile(b)
		sides.Run("statements", n, func() { s.fill(b, n, 256, time.Now().Add(time.Hour)) })
	}
	reportRace(b, sides, "statements")
}
