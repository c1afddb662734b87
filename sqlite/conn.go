package sqlite

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/internal/sqlqueue"
)

//go:embed sql/*.sql
var files embed.FS

// A conn is a connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	*sqlite3.Conn
	prepared map[string]*sqlite3.Stmt
}

// connect opens the file, and creates it where that is allowed.
func connect(path string, flags sqlite3.OpenFlag, busy time.Duration) (*conn, error) {
	c, err := sqlite3.OpenFlags(path, flags|sqlite3.OPEN_EXRESCODE)
	if err != nil {
		return nil, err
	}
	var since time.Time
	err = c.BusyHandler(func(ctx context.Context, tries int) bool {
		if tries == 0 {
			since = time.Now()
		}
		if time.Since(since) > busy || ctx.Err() != nil {
			return false
		}
		time.Sleep(time.Duration(min(tries+1, mostPatient)) * time.Millisecond)
		return true
	})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &conn{Conn: c, prepared: make(map[string]*sqlite3.Stmt)}, nil
}

// mostPatient is the longest wait, in milliseconds, before a lock is tried again. SQLite's own
// handler waits for up to 100 ms, and messages would be late by as much.
const mostPatient = 4

// Close closes the statements and the connection.
func (c *conn) Close() error {
	for _, s := range c.prepared {
		_ = s.Close()
	}
	return c.Conn.Close()
}

// statement returns the prepared statement of a file.
func (c *conn) statement(name string) (*sqlite3.Stmt, error) {
	if s := c.prepared[name]; s != nil {
		return s, nil
	}
	s, _, err := c.PrepareFlags(sqlqueue.Statement(files, "sql", name), sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	c.prepared[name] = s
	return s, nil
}

// rows runs a statement and calls row for each row, until that returns false. Arguments are int64,
// string, []byte, or nil for NULL.
func (c *conn) rows(name string, row func(*sqlite3.Stmt) bool, args ...any) error {
	s, err := c.statement(name)
	if err != nil {
		return err
	}
	for i, a := range args {
		if err := bind(s, 1+i, a); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for s.Step() && row(s) {
	}
	err = s.Err()
	if reset := s.Reset(); err == nil {
		err = reset
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func bind(s *sqlite3.Stmt, i int, a any) error {
	switch a := a.(type) {
	case int64:
		return s.BindInt64(i, a)
	case string:
		return s.BindText(i, a)
	case []byte:
		if a != nil {
			return s.BindBlob(i, a)
		}
	}
	return s.BindNull(i)
}

// exec runs a statement without rows, and returns how many rows it changed.
func (c *conn) exec(name string, args ...any) (changed int64, err error) {
	err = c.rows(name, func(*sqlite3.Stmt) bool { return true }, args...)
	return c.Changes(), err
}

// number returns the integer of a statement's only row, and 0 where there is none.
func (c *conn) number(name string, args ...any) (n int64, err error) {
	err = c.rows(name, func(s *sqlite3.Stmt) bool {
		n = s.ColumnInt64(0)
		return true
	}, args...)
	return n, err
}
