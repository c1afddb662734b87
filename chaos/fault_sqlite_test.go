package chaos

import (
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/internal/judge"
)

// sqliteFaults are what other programs do to a file.
func sqliteFaults(t *testing.T, path string) []*fault {
	t.Helper()
	return []*fault{
		// As a shell does in which somebody has begun a transaction.
		onConnection("write lock held", 2, 800*time.Millisecond, breaks, path, "BEGIN IMMEDIATE", func(*injection, *sqlite3.Conn) int { return 1 }),
		// As a backup does: what is written meanwhile has to stay in the log.
		onConnection("read held", 2, 1500*time.Millisecond, judge.Window{}, path, "BEGIN; SELECT count(*) FROM delayq_message", func(i *injection, _ *sqlite3.Conn) int {
			other := connectTo(i, path, 0)
			defer func() { must(i.T, other.Close()) }()
			return count(!checkpointed(i, other))
		}),
		instant("checkpoint", 2, judge.Window{}, func(i *injection) int {
			c := connectTo(i, path, time.Second)
			defer func() { must(i.T, c.Close()) }()
			return count(checkpointed(i, c))
		}),
		// It rewrites the whole file, under the lock.
		instant("VACUUM", 1, breaks, func(i *injection) int {
			c := connectTo(i, path, 10*time.Second)
			defer func() { must(i.T, c.Close()) }()
			must(i.T, c.Exec("VACUUM"))
			return 1
		}),
	}
}

// onConnection keeps a connection in the state after some statements. effect is read at the end.
func onConnection(name string, weight int, length time.Duration, w judge.Window, path, statements string, effect func(*injection, *sqlite3.Conn) int) *fault {
	return lasting(name, weight, length, w, func(i *injection) func() int {
		c := connectTo(i, path, 10*time.Second)
		must(i.T, c.Exec(statements))
		return func() int {
			defer func() { must(i.T, c.Close()) }()
			return effect(i, c)
		}
	}).alone()
}

func connectTo(i *injection, path string, busy time.Duration) *sqlite3.Conn {
	i.Helper()
	c, err := sqlite3.Open(path)
	must(i.T, err)
	must(i.T, c.BusyTimeout(busy))
	return c
}

// checkpointed has everything moved from the log to the file, and reports whether that was possible.
func checkpointed(i *injection, c *sqlite3.Conn) bool {
	i.Helper()
	s, _, err := c.Prepare("PRAGMA wal_checkpoint(TRUNCATE)")
	must(i.T, err)
	defer func() { must(i.T, s.Close()) }()
	if !s.Step() {
		must(i.T, s.Err())
	}
	return s.ColumnInt(0) == 0
}
