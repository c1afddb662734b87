package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/sqlqueue"
)

//go:embed sql/*.sql
var files embed.FS

// migrations are the files of each version of the schema, in their order. A version that is out
// never changes: what comes later is a version of its own.
var migrations = [][]string{
	{
		"tables", "clock", "state", "push", "replace", "sweep", "claim", "ack", "nack", "extend", "dead_letter",
		"cancel", "reschedule", "redrive", "delete_dead", "trim_dead", "purge", "pause", "resume", "count", "forget_counts", "get", "peek", "stats",
		"list_queues",
	},
}

// SQL returns the statements that make the tables and functions, for teams that migrate with a tool
// of their own: run them in one transaction, and open queues with [NoMigration]. They may be run
// again. It takes the options [Schema] and [Prefix].
func SQL(opts ...Option) (string, error) {
	c := configure(opts)
	return c.migration(0), c.err
}

// migration returns the statements that follow a version. Run at once, without a transaction, they
// are one of their own.
func (c *config) migration(from int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- delayq, version %d of its schema.\n", len(migrations))
	fmt.Fprintf(&b, "SELECT pg_advisory_xact_lock(hashtextextended('%s', 0)); -- one migration at a time\n", c.name("schema"))
	if c.schema != "public" {
		// The session may remember from before the lock that there was no schema. Opening the catalog has it
		// hear of what others have made.
		b.WriteString("SELECT FROM pg_catalog.pg_namespace LIMIT 0;\n")
		fmt.Fprintf(&b, "CREATE SCHEMA IF NOT EXISTS \"%s\";\n", c.schema)
	}
	b.WriteByte('\n')
	for _, names := range migrations[from:] {
		for _, name := range names {
			fmt.Fprintf(&b, "%s\n", c.text(sqlqueue.Statement(files, "sql", name)))
		}
	}
	fmt.Fprintf(&b, "DELETE FROM %[1]s;\nINSERT INTO %[1]s VALUES (%[2]d);\n", c.name("schema"), len(migrations))
	return b.String()
}

// A server is what prepare asks about.
type server struct {
	version  int
	replica  bool
	encoding string
	schema   bool // exists
	table    bool // of the version
}

const oldestServer = 130000

// prepare checks the server, and makes or upgrades the tables.
func (b *Backend) prepare(ctx context.Context) error {
	s, err := call(ctx, b, `SELECT current_setting('server_version_num')::int, current_setting('transaction_read_only') = 'on',
		current_setting('server_encoding'), to_regnamespace($1::text) IS NOT NULL, to_regclass($2::text) IS NOT NULL`,
		[]any{`"` + b.cfg.schema + `"`, b.cfg.name("schema")},
		func(s *server, scan scan) error {
			return scan(&s.version, &s.replica, &s.encoding, &s.schema, &s.table)
		})
	switch {
	case err != nil:
		return err
	case s.version < oldestServer:
		return fmt.Errorf("PostgreSQL %d is too old: delayq needs 13 or newer", s.version/10000)
	case s.replica:
		return fmt.Errorf("%w: the server is read-only, such as a replica: connect to the primary, as with target_session_attrs=read-write", backend.ErrUnavailable)
	case s.encoding != "UTF8":
		return fmt.Errorf("the database's encoding is %s: delayq needs UTF8, as ids are", s.encoding)
	}
	found := 0
	if s.table {
		if found, err = call(ctx, b, "SELECT version FROM "+b.cfg.name("schema"), nil, func(n *int, s scan) error { return s(n) }); err != nil {
			return err
		}
	}
	return b.migrate(ctx, s, found)
}

func (b *Backend) migrate(ctx context.Context, s server, found int) error {
	switch want := len(migrations); {
	case found == want:
		return nil
	case found > want:
		return fmt.Errorf("the tables %s* are of version %d, and this delayq knows %d: use a newer release of delayq", b.cfg.name(""), found, want)
	case !b.cfg.migrate && found == 0:
		return fmt.Errorf("there are no tables %s*: run the statements of postgres.SQL, or open the queue without NoMigration", b.cfg.name(""))
	case !b.cfg.migrate:
		return fmt.Errorf("the tables %s* are of version %d, and this delayq needs %d: run the statements of postgres.SQL, or open the queue without NoMigration", b.cfg.name(""), found, want)
	}
	statements := b.cfg.migration(found)
	if s.schema { // to make it again takes a right, even where it is there
		statements = strings.Replace(statements, "CREATE SCHEMA IF NOT EXISTS", "-- CREATE SCHEMA IF NOT EXISTS", 1)
	}
	_, err := callWith(ctx, b, func(ctx context.Context, e executor) (struct{}, error) {
		return struct{}{}, e.exec(ctx, statements)
	})
	var refused interface{ SQLState() string }
	if errors.As(err, &refused) && refused.SQLState() == noPermission {
		return fmt.Errorf("making the tables %s*: %w; or run the statements of postgres.SQL as another user", b.cfg.name(""), err)
	}
	if err != nil {
		return fmt.Errorf("making the tables %s*: %w", b.cfg.name(""), err)
	}
	return nil
}
