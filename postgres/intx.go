package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/valid"
)

// A transaction is one of the caller, in which a view of a queue makes its changes.
type transaction struct {
	run     func(ctx context.Context, statement string, args []any, row func(scan) error) error
	checked bool // it is of the backend's database
}

// InTx is handle.Source.Within. A pgx.Tx and a *sql.Tx will do, however the backend was made.
func (m *messages) InTx(tx any) (handle.Changes, error) {
	t := &transaction{}
	if v := reflect.ValueOf(tx); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, invalidTx(fmt.Sprintf("nil of type %T", tx))
	}
	switch tx := tx.(type) {
	case pgx.Tx:
		t.run = func(ctx context.Context, statement string, args []any, row func(scan) error) error {
			return pgxQuery(ctx, tx, statement, args, row)
		}
	case *sql.Tx:
		t.run = func(ctx context.Context, statement string, args []any, row func(scan) error) error {
			return sqlQuery(ctx, tx, statement, args, row)
		}
	default:
		return nil, invalidTx(fmt.Sprintf("of type %T", tx))
	}
	return &messages{b: m.b, queue: m.queue, clock: m.clock, tx: t}, nil
}

func invalidTx(was string) error {
	return backend.Invalid("transaction", valid.Described(was), "an open pgx.Tx or *sql.Tx on the database that the queue is in")
}

// inTx is the origin of the notifications that transactions of callers send. It is no backend's id,
// so that the handles of this process wake too.
const inTx = "tx"

// change calls a function inside the transaction. The server sends the notification at the commit,
// and only then.
func (t *transaction) change(ctx context.Context, m *messages, statement string, args []any) (c changed, err error) {
	if err := t.check(ctx, m.b); err != nil {
		return c, err
	}
	n := len(args)
	statement = fmt.Sprintf(`SELECT c.outcomes, c.now, c.soonest, CASE WHEN c.soonest <= c.now + $%d::bigint THEN pg_notify($%d::text, $%d::text || c.soonest)::text END FROM (%s) c`,
		n+1, n+2, n+3, statement)
	args = append(args, maxPoll.Microseconds(), m.b.cfg.channel(), strings.TrimSuffix(payload(inTx, m.queue, 0), "0"))
	err = t.run(ctx, statement, args, func(s scan) error {
		var notified *string
		return s(&c.outcomes, &c.now, &c.soonest, &notified)
	})
	return c, explainInTx(ctx, &m.b.cfg, err)
}

// check makes sure once that the transaction is one of the backend's database.
func (t *transaction) check(ctx context.Context, b *Backend) error {
	if t.checked {
		return nil
	}
	b.mu.Lock()
	want := b.place
	b.mu.Unlock()
	var found place
	err := t.run(ctx, want.query, want.args(b), found.read)
	var refused interface{ SQLState() string }
	switch {
	case err == nil && found.mark == want.mark && found.database == want.database:
		t.checked = true
		return nil
	case err == nil:
		return invalidTx("of another database")
	case isBusy(err): // see explainInTx
	case errors.As(err, &refused) && strings.HasPrefix(refused.SQLState(), "42"), !errors.As(err, &refused) && !connectionFailed(ctx, err):
		return fmt.Errorf("%w: %w", invalidTx("of another database"), err)
	}
	return explainInTx(ctx, &b.cfg, err)
}

// connectionFailed reports whether a statement could not be sent, or its reply not be read.
func connectionFailed(ctx context.Context, err error) bool {
	var network *net.OpError
	return ctx.Err() != nil || isOver(err) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}

// isBusy reports whether the caller still reads the rows of a query on the connection. pgx has no
// type for it.
func isBusy(err error) bool { return strings.Contains(err.Error(), "conn busy") }

func isOver(err error) bool { return errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxClosed) }

// failedBefore is the code of a statement in a transaction in which another one has failed.
const failedBefore = "25P02"

// explainInTx is explain for an error in a transaction of the caller. Where the connection broke the
// outcome is known: the transaction cannot be committed any more.
func explainInTx(ctx context.Context, c *config, err error) error {
	var refused interface{ SQLState() string }
	switch {
	case err == nil:
		return nil
	case isOver(err):
		return fmt.Errorf("%w: %w", invalidTx("that is over"), err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case isBusy(err):
		return fmt.Errorf("the transaction is in use: read all rows of your own query and close them before the call; now roll it back: %w", err)
	case !errors.As(err, &refused):
		return fmt.Errorf("%w: the connection broke, and the transaction with it: %w", backend.ErrUnavailable, err)
	case refused.SQLState() == failedBefore:
		return fmt.Errorf("the transaction has failed before, roll it back: %w", err)
	case refused.SQLState() == readOnly:
		return fmt.Errorf("the transaction is read-only, or the server is: begin one that may write: %w", err)
	}
	return explainCode(c, refused.SQLState(), err)
}

// A place tells databases apart.
type place struct {
	query          string
	mark, database int64
}

// The mark is the server's system identifier. Where the user may not call pg_control_system, it is
// the number of the table.
const (
	placeOfServer = "SELECT (SELECT system_identifier FROM pg_control_system()), oid::bigint FROM pg_database WHERE datname = current_database()"
	placeOfTable  = "SELECT coalesce(to_regclass($1::text)::oid::bigint, 0), oid::bigint FROM pg_database WHERE datname = current_database()"
)

func (p *place) read(s scan) error { return s(&p.mark, &p.database) }

func (p *place) args(b *Backend) []any {
	if p.query == placeOfTable {
		return []any{b.cfg.name("messages")}
	}
	return nil
}

// readPlace reads where the backend's tables are.
func (b *Backend) readPlace(ctx context.Context) (p place, err error) {
	for _, query := range []string{placeOfServer, placeOfTable} {
		p.query = query
		p, err = call(ctx, b, query, p.args(b), func(p *place, s scan) error { p.query = query; return p.read(s) })
		var refused interface{ SQLState() string }
		if err == nil || !errors.As(err, &refused) {
			break
		}
	}
	return p, err
}
