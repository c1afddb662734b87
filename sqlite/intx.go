package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/sqlqueue"
	"github.com/delayq/delayq/internal/valid"
)

// InTx is handle.Source.Within. A *sql.Tx of the same driver will do.
func (m *messages) InTx(tx any) (handle.Changes, error) {
	t, ok := tx.(*sql.Tx)
	switch {
	case !ok:
		return nil, invalidTx(fmt.Sprintf("of type %T", tx))
	case t == nil:
		return nil, invalidTx("nil")
	}
	return &messages{file: m.file, name: m.name, queue: m.queue, clock: m.clock, user: &userTx{tx: t}}, nil
}

func invalidTx(was string) error {
	return backend.Invalid("transaction", valid.Described(was), "an open *sql.Tx of the driver github.com/ncruces/go-sqlite3/driver on the queue's file")
}

// A userTx is a transaction of the caller, which a view of a queue makes its changes in.
type userTx struct {
	tx   *sql.Tx
	ours bool // it is of the queue's file
}

// A userCall is a call of a view. It runs the statements of files as a conn does.
type userCall struct {
	*userTx
	ctx context.Context //nolint:containedctx // of the caller
}

// submit has an operation run in a transaction: the writer's next one, or the caller's.
func (m *messages) submit(ctx context.Context, do func(*tx) error) error {
	if m.user != nil {
		c := userCall{m.user, ctx}
		return c.explain(c.run(m.path, do))
	}
	return m.writer.submit(ctx, do)
}

// run runs an operation, of which an error leaves nothing.
func (c *userCall) run(path string, do func(*tx) error) (err error) {
	if !c.ours {
		if err := c.checkFile(path); err != nil {
			return err
		}
		c.ours = true
	}
	if err := c.checkOpen(); err != nil {
		return err
	}
	if err := c.statement("SAVEPOINT delayq"); err != nil {
		return err
	}
	t := &tx{user: c}
	if err = do(t); err == nil {
		err = t.end()
	}
	if err == nil {
		err = c.statement("RELEASE delayq")
	}
	if err == nil {
		return nil
	}
	// It fails where SQLite has rolled back the whole transaction.
	_, _ = c.tx.ExecContext(context.WithoutCancel(c.ctx), "ROLLBACK TO delayq; RELEASE delayq")
	return err
}

func (c *userCall) statement(text string) error {
	_, err := c.tx.ExecContext(c.ctx, text)
	return err
}

// checkFile makes sure that the transaction's main database is the queue's file.
func (c *userCall) checkFile(path string) error {
	main := ""
	err := c.query("PRAGMA database_list", func(s columns) bool {
		if string(s.ColumnBlob(1, nil)) == "main" {
			main = string(s.ColumnBlob(2, nil))
		}
		return true
	})
	if err != nil {
		return err
	}
	if theirs, err := os.Stat(main); err == nil {
		if ours, err := os.Stat(path); err == nil && os.SameFile(theirs, ours) {
			return nil
		}
	}
	return invalidTx("of another file, " + main)
}

// checkOpen makes sure that there is a transaction. SQLite rolls one back by itself after some errors,
// such as a full disk, and database/sql does not know: each further statement would be committed by
// itself. A second BEGIN tells: within a transaction it fails, and does nothing.
func (c *userCall) checkOpen() error {
	err := c.statement("BEGIN")
	var refused *sqlite3.Error
	switch {
	case err == nil:
		_, _ = c.tx.ExecContext(context.WithoutCancel(c.ctx), "ROLLBACK")
		return invalidTx("that SQLite has rolled back after an error")
	case errors.As(err, &refused) && refused.ExtendedCode() == sqlite3.ExtendedErrorCode(sqlite3.ERROR):
		return nil
	}
	return err
}

// explain returns what an error in the caller's transaction means to a queue.
func (c *userCall) explain(err error) error {
	switch over := c.ctx.Err(); {
	case err == nil:
		return nil
	case over != nil && errors.Is(err, over):
		return err
	case over != nil:
		return fmt.Errorf("%w: %w", over, err)
	case errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("%w: %w", invalidTx("that is over"), err)
	case errors.Is(err, backend.ErrInvalid):
		return err
	case !isSQLite(err):
		return fmt.Errorf("%w: %w", invalidTx("of another driver"), err)
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED):
		return fmt.Errorf("%w: another connection writes, or has written since this transaction began to read: roll it back, and begin with BEGIN IMMEDIATE (_txlock=immediate in the file's URI): %w",
			backend.ErrUnavailable, err)
	case errors.Is(err, sqlite3.READONLY):
		return fmt.Errorf("the transaction is read-only, or the file is: begin one that may write: %w", err)
	}
	return explain(err)
}

// isSQLite reports whether an error is one of this driver.
func isSQLite(err error) bool {
	var (
		text     *sqlite3.Error
		code     sqlite3.ErrorCode
		extended sqlite3.ExtendedErrorCode
	)
	return errors.As(err, &text) || errors.As(err, &code) || errors.As(err, &extended)
}

// columns are a row of a result.
type columns interface {
	ColumnInt64(column int) int64
	ColumnBlob(column int, buf []byte) []byte
}

// sqlColumns are those of database/sql.
type sqlColumns []any

func (s sqlColumns) ColumnInt64(column int) int64 {
	n, _ := s[column].(int64)
	return n
}

func (s sqlColumns) ColumnBlob(column int, _ []byte) []byte {
	switch v := s[column].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	default:
		return nil
	}
}

// query runs a statement and calls row for each row, until that returns false.
func (c *userCall) query(statement string, row func(columns) bool, args ...any) error {
	rows, err := c.tx.QueryContext(c.ctx, statement, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, into := make(sqlColumns, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if !row(values) {
			break
		}
	}
	return rows.Err()
}

// sqlArgs makes a nil slice NULL, as bind does.
func sqlArgs(args []any) []any {
	for i, a := range args {
		if b, ok := a.([]byte); ok && b == nil {
			args[i] = nil
		}
	}
	return args
}

// get runs the statement of a file and calls row for each row, until that returns false.
func (t *tx) get(name string, row func(columns) bool, args ...any) error {
	if t.user == nil {
		return t.conn.rows(name, func(s *sqlite3.Stmt) bool { return row(s) }, args...)
	}
	if err := t.user.query(sqlqueue.Statement(files, "sql", name), row, sqlArgs(args)...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// exec is as in conn.
func (t *tx) exec(name string, args ...any) (changed int64, err error) {
	if t.user == nil {
		return t.conn.exec(name, args...)
	}
	result, err := t.user.tx.ExecContext(t.user.ctx, sqlqueue.Statement(files, "sql", name), sqlArgs(args)...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return result.RowsAffected()
}

// number is as in conn.
func (t *tx) number(name string, args ...any) (n int64, ok bool, err error) {
	err = t.get(name, func(s columns) bool {
		n, ok = s.ColumnInt64(0), true
		return true
	}, args...)
	return n, ok, err
}
