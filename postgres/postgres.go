package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
)

// Backend keeps queues in a PostgreSQL database. It is safe for concurrent use.
type Backend struct {
	db     database
	cfg    config
	number uint64        // among the process's backends
	within time.Duration // claimWithin; a test has less

	hub      handle.Hub
	calls    calls
	news     announcer
	listener listener

	mu      sync.Mutex
	open    map[*handle.Queue]*messages
	closed  bool
	checked bool // the schema was found to be right
	place   place
}

var _ backend.Backend = (*Backend)(nil)

type config struct {
	schema, prefix string
	poll           time.Duration
	migrate        bool
	owned          bool  // Close closes the database
	err            error // of an option; Open reports it
}

func (c *config) reject(err error) { c.err = errors.Join(c.err, err) }

// An Option sets up a backend in [New] and [NewDB]. One out of range is reported by Open.
type Option func(*config)

// Schema sets the schema of the tables and functions, "public" by default: 1 to 63 bytes of letters,
// digits and "_". A migration creates it.
func Schema(name string) Option {
	return func(c *config) {
		if !schemaName.MatchString(name) {
			c.reject(backend.Invalid("postgres.Schema", name, "1 to 63 letters, digits and _, not a digit first"))
		}
		c.schema = name
	}
}

// Prefix sets how the names of tables and functions begin, "delayq_" by default: 1 to 32 lower-case
// letters, digits and "_". Backends of other prefixes have queues of their own.
func Prefix(p string) Option {
	return func(c *config) {
		if !prefixName.MatchString(p) {
			c.reject(backend.Invalid("postgres.Prefix", p, "1 to 32 lower-case letters, digits and _, not a digit first"))
		}
		c.prefix = p
	}
}

var (
	schemaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	prefixName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
)

// Poll sets how long an idle queue sleeps when no wake-up comes, 10 ms to 10 s, 1 s by default. It
// bounds how late a lost wake-up can make a message. More than a hundred queues with waiting
// workers share a hundred looks a second.
func Poll(d time.Duration) Option {
	return func(c *config) {
		if d < 10*time.Millisecond || d > 10*time.Second {
			c.reject(backend.Invalid("postgres.Poll", d, "10ms to 10s"))
		}
		c.poll = d
	}
}

// maxPoll is the longest that any process sleeps without a wake-up, as a thousand queues do. A message
// that is due later than that needs none.
const maxPoll = 10500 * time.Millisecond

// NoMigration says that the tables are there already, made with the statements of [SQL]. Without it
// the first Open makes them, which takes the right to create tables and functions in the schema.
func NoMigration() Option { return func(c *config) { c.migrate = false } }

// New returns a backend on a pool. The caller closes the pool, after the backend. Nothing is sent
// before the first queue is opened. It opens one connection beside the pool's, for LISTEN.
func New(pool *pgxpool.Pool, opts ...Option) *Backend {
	if pool == nil {
		return newBackend(nil, append(opts, func(c *config) { c.reject(backend.Invalid("pool", nil, "a pgxpool.Pool")) }))
	}
	return newBackend(&pgxDatabase{pool}, opts)
}

// NewDB returns a backend on a database/sql handle of any driver for PostgreSQL. There is no LISTEN:
// a message that another process pushes may be late by [Poll]. Prefer [New].
func NewDB(db *sql.DB, opts ...Option) *Backend {
	if db == nil {
		return newBackend(nil, append(opts, func(c *config) { c.reject(backend.Invalid("db", nil, "a sql.DB")) }))
	}
	return newBackend(&sqlDatabase{db}, opts)
}

func newBackend(db database, opts []Option) *Backend {
	b := &Backend{db: db, cfg: configure(opts), number: backends.Add(1), within: claimWithin, open: make(map[*handle.Queue]*messages)}
	b.news.b, b.listener.b = b, b
	b.hub.Poll, b.hub.MaxPoll, b.hub.Go = b.cfg.poll, maxPoll, b.calls.run
	return b
}

// backends counts the process's backends.
var backends atomic.Uint64

func configure(opts []Option) config {
	c := config{schema: "public", prefix: "delayq_", poll: time.Second, migrate: true}
	for _, set := range opts {
		if set == nil {
			c.reject(backend.Invalid("postgres option", "nil", "the result of Schema, Prefix, Poll or NoMigration"))
			continue
		}
		set(&c)
	}
	return c
}

// Traits returns the backend's promises: everything, to the microsecond.
func (b *Backend) Traits() backend.Traits {
	return backend.Traits{Name: "postgres", Resolution: time.Microsecond, Sweep: b.cfg.poll, Calls: backend.Transaction}
}

// Open returns a handle on the queue of that name. The first Open checks the server, and makes or
// upgrades the tables where no option says otherwise.
func (b *Backend) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if err := errors.Join(b.cfg.err, ctx.Err()); err != nil {
		return nil, err
	}
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	m := &messages{b: b, queue: name, clock: o.Clock}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	q := handle.New(handle.Source{Messages: m, Name: name, Claim: m.claim, Within: m.InTx, Count: m.addActivity, Clock: o.Clock}, &b.hub, o.Logger, b.forget)
	b.open[q] = m
	return q, nil
}

// check makes sure once that the server and its tables can be used.
func (b *Backend) check(ctx context.Context) error {
	b.mu.Lock()
	checked, closed := b.checked, b.closed
	b.mu.Unlock()
	if closed {
		return backend.ErrClosed
	}
	if checked {
		return nil
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	place, err := b.readPlace(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.checked, b.place = true, place
	b.mu.Unlock()
	return nil
}

func (b *Backend) forget(q *handle.Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, q)
}

// closeWithin bounds how long Close waits for a server that does not reply.
const closeWithin = 5 * time.Second

// Close closes all queues, and the pool where a URL made it. Messages stay. It waits up to 5 s for
// calls under way; where the server does not reply to them in that time, the error matches
// [backend.ErrUnavailable].
func (b *Backend) Close() error {
	b.mu.Lock()
	open, was := b.open, b.closed
	b.open, b.closed = make(map[*handle.Queue]*messages), true
	b.mu.Unlock()
	if was {
		return nil
	}
	within, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	handle.CloseAll(maps.Keys(open))
	b.listener.close()
	if b.cfg.owned {
		b.calls.run(b.db.close)
	}
	if !b.calls.wait(within) {
		return fmt.Errorf("closing postgres: %w: calls still wait for the server", backend.ErrUnavailable)
	}
	return nil
}

// wake tells the handles of this process that messages of a queue become due then, by the store's
// clock; the zero time is at once.
func (b *Backend) wake(queue string, due time.Time) {
	b.mu.Lock()
	for _, m := range b.open {
		if m.queue == queue {
			m.scan.lower(due)
		}
	}
	b.mu.Unlock()
	b.hub.Wake(queue, due)
}

// endSooner tells the handles of this process that a lease may end sooner than they know.
func (b *Backend) endSooner(queue string, at int64) {
	b.mu.Lock()
	for _, m := range b.open {
		if m.queue == queue {
			m.scan.lowerTo(math.MaxInt64, at)
		}
	}
	b.mu.Unlock()
	b.hub.Wake(queue, moment(at))
}

// name returns a table's or a function's name in SQL.
func (c *config) name(what string) string { return `"` + c.schema + `".` + c.prefix + what }

// text puts the schema and the prefix into a statement of a file.
func (c *config) text(statement string) string {
	statement = strings.ReplaceAll(statement, "public.delayq_", c.name(""))
	return strings.ReplaceAll(statement, "delayq_messages_at ON", c.prefix+"messages_at ON")
}
