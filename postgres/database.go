package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A database runs statements. The driver's own type of arrays is used where it has one.
type database interface {
	// acquire returns a connection, or ctx's error having sent nothing.
	acquire(ctx context.Context) (connection, error)
	// listen calls ready when it listens to a channel, and got for each notification. It returns
	// when ctx ends or the connection breaks, and at once where the driver cannot listen.
	listen(ctx context.Context, channel string, ready func(), got func(payload string)) error
	close()
}

// A connection is one of the database's pool.
type connection interface {
	executor
	release()
}

// An executor runs statements: a connection, or a transaction of the user.
type executor interface {
	// query calls row for each row.
	query(ctx context.Context, statement string, args []any, row func(scan) error) error
	// exec runs statements without arguments or results, as one transaction outside of any.
	exec(ctx context.Context, statements string) error
}

type scan = func(...any) error

var errNoListen = errors.New("database/sql has no LISTEN")

type pgxDatabase struct{ pool *pgxpool.Pool }

type pgxConnection struct{ *pgxpool.Conn }

func (d *pgxDatabase) acquire(ctx context.Context) (connection, error) {
	c, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return pgxConnection{c}, nil
}

func (d *pgxDatabase) close() { d.pool.Close() }

func (d *pgxDatabase) listen(ctx context.Context, channel string, ready func(), got func(string)) error {
	whole := d.pool.Config()
	cfg := whole.ConnConfig
	if whole.BeforeConnect != nil { // it may set a password that changes
		if err := whole.BeforeConnect(ctx, cfg); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	ready()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		got(n.Payload)
	}
}

func (c pgxConnection) release() { c.Conn.Release() }

func (c pgxConnection) query(ctx context.Context, statement string, args []any, row func(scan) error) error {
	return pgxQuery(ctx, c.Conn, statement, args, row)
}

func (c pgxConnection) exec(ctx context.Context, statements string) error {
	_, err := c.Conn.Exec(ctx, statements)
	return err
}

type pgxQuerier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
}

func pgxQuery(ctx context.Context, q pgxQuerier, statement string, args []any, row func(scan) error) error {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

type sqlDatabase struct{ db *sql.DB }

type sqlConnection struct{ *sql.Conn }

func (d *sqlDatabase) acquire(ctx context.Context) (connection, error) {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return sqlConnection{c}, nil
}

func (*sqlDatabase) close() {} // a URL never makes one

func (*sqlDatabase) listen(context.Context, string, func(), func(string)) error { return errNoListen }

func (c sqlConnection) release() { _ = c.Conn.Close() }

func (c sqlConnection) query(ctx context.Context, statement string, args []any, row func(scan) error) error {
	return sqlQuery(ctx, c.Conn, statement, args, row)
}

func (c sqlConnection) exec(ctx context.Context, statements string) error {
	_, err := c.Conn.ExecContext(ctx, statements)
	return err
}

type sqlQuerier interface {
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

func sqlQuery(ctx context.Context, q sqlQuerier, statement string, args []any, row func(scan) error) error {
	plain := make([]any, len(args))
	for i, a := range args {
		plain[i] = literal(a)
	}
	rows, err := q.QueryContext(ctx, statement, plain...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// literal writes an array as the text that PostgreSQL reads, which every driver passes on.
func literal(a any) any {
	switch a := a.(type) {
	case []string:
		return array(a, quoted)
	case []int64:
		return array(a, func(n int64) string { return fmt.Sprint(n) })
	case []bool:
		return array(a, func(b bool) string { return fmt.Sprint(b) })
	case [][]byte:
		return array(a, func(b []byte) string { return fmt.Sprintf(`"\\x%x"`, b) })
	default:
		return a
	}
}

func array[T any](all []T, one func(T) string) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = one(v)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoted(s string) string { return `"` + quotes.Replace(s) + `"` }
