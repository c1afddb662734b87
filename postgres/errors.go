package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/delayq/delayq/backend"
)

// Codes of errors, https://www.postgresql.org/docs/current/errcodes-appendix.html.
const (
	deadlock      = "40P01"
	lockTimeout   = "55P03"
	serialization = "40001"
	readOnly      = "25006"
	noPermission  = "42501"
	noTable       = "42P01"
	noFunction    = "42883"
	noSchema      = "3F000"
	diskFull      = "53100"
	idleTooLong   = "25P03" // idle_in_transaction_session_timeout
	tooLong       = "25P04" // transaction_timeout

	brokenConnection = "08" // a class
)

// explain matches an error of the database to those of package backend, and says what to do.
func explain(c *config, err error) error {
	if err == nil || errors.Is(err, backend.ErrOutcomeUnknown) {
		return err
	}
	var notSent unsent
	nothingSent := errors.As(err, &notSent) || pgconn.SafeToRetry(err)
	if code := codeOf(err); strings.HasPrefix(code, brokenConnection) && !nothingSent && !unconnected(err) {
		return outcomeUnknown(err) // a pooler says so when it has lost the server in the middle of a statement
	} else if code != "" {
		return explainCode(c, code, err)
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.As(err, &notSent) && ended:
		return notSent.error
	case nothingSent:
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	default:
		return outcomeUnknown(err)
	}
}

// outcomeUnknown is the error of a statement whose connection broke: it may have been carried out.
func outcomeUnknown(err error) error {
	return fmt.Errorf("%w: %w: %w", backend.ErrUnavailable, backend.ErrOutcomeUnknown, err)
}

// codeOf is the code of an error of the server, or nothing.
func codeOf(err error) string {
	var refused interface{ SQLState() string }
	if errors.As(err, &refused) {
		return refused.SQLState()
	}
	return ""
}

func explainCode(c *config, code string, err error) error {
	switch {
	case code == readOnly:
		return fmt.Errorf("%w: the server is read-only, such as a replica: connect to the primary, as with target_session_attrs=read-write: %w", backend.ErrUnavailable, err)
	case code == noPermission:
		return fmt.Errorf("%w: grant the user SELECT, INSERT, UPDATE and DELETE on the tables %s*, USAGE on the sequence and EXECUTE on the functions; to create them, CREATE on the schema", err, c.name(""))
	case code == noTable, code == noFunction, code == noSchema:
		return fmt.Errorf("%w: the tables %s* are missing or of another version: open the queue without NoMigration, or run the statements of postgres.SQL", err, c.name(""))
	case code == diskFull:
		return fmt.Errorf("%w: the server's disk: %w", backend.ErrFull, err)
	case strings.HasPrefix(code, brokenConnection), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "58"),
		code == deadlock, code == serialization, code == idleTooLong, code == tooLong, code == lockTimeout, code == "57014":
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	default:
		return err
	}
}
