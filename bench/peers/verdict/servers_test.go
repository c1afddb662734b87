package verdict

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	_ "github.com/ncruces/go-sqlite3/driver" // as goqite leaves the driver to its users
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	interop "github.com/delayq/delayq/interop/redisson"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// twice is a harness whose second client is made as the first.
func twice(open func() backend.Backend) conformance.Harness {
	return conformance.Harness{
		New:    func(context.Context) (backend.Backend, func(), error) { return open(), nil, nil },
		Attach: func(context.Context, backend.Backend) (backend.Backend, func(), error) { return open(), nil, nil },
	}
}

func openMemory(testing.TB) (conformance.Harness, string) {
	return conformance.Harness{New: func(context.Context) (backend.Backend, func(), error) { return memory.New(), nil, nil }}, ""
}

// openRedis judges a backend of delayq's on a Redis of its own.
func openRedis(tb testing.TB, open func(c redis.UniversalClient, prefix string) backend.Backend) (conformance.Harness, string) {
	tb.Helper()
	s := testenv.Redis(tb)
	var made atomic.Int64
	var places sync.Map // the prefix of each backend
	dial := func(prefix string) (backend.Backend, func()) {
		c := redis.NewClient(s.Options())
		b := open(c, prefix)
		places.Store(b, prefix)
		return b, func() { _ = c.Close() }
	}
	return conformance.Harness{
		New: func(context.Context) (backend.Backend, func(), error) {
			b, cleanup := dial(fmt.Sprint("verdict-", made.Add(1)))
			return b, cleanup, nil
		},
		Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
			prefix, _ := places.Load(b)
			b, cleanup := dial(prefix.(string))
			return b, cleanup, nil
		},
	}, redisVersion(tb, s)
}

func redisVersion(tb testing.TB, s *testenv.RedisServer) string {
	tb.Helper()
	c := redis.NewClient(s.Options())
	defer func() { _ = c.Close() }()
	info, err := c.InfoMap(context.Background(), "server").Result()
	must(tb, err)
	return "Redis " + info["Server"]["redis_version"]
}

func openZsetpoll(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	return openRedis(tb, func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix))
	})
}

func openKeyspace(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	return openRedis(tb, func(c redis.UniversalClient, prefix string) backend.Backend {
		return keyspace.New(c, keyspace.Prefix(prefix), keyspace.Sweep(200*time.Millisecond))
	})
}

func openRedisson(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	return openRedis(tb, func(c redis.UniversalClient, prefix string) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Envelope), redisson.NamePrefix(prefix+":"), redisson.Sweep(200*time.Millisecond))
	})
}

func openRabbitMQ(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	s := testenv.SharedRabbitMQ(tb)
	url := s.VhostURL(s.Vhost(tb))
	h := twice(func() backend.Backend { return rabbitmq.New(url, rabbitmq.Namespace("verdict")) })
	h.Tick = 400 * time.Millisecond
	conn, err := amqp.Dial(url)
	must(tb, err)
	defer func() { _ = conn.Close() }()
	return h, fmt.Sprint("RabbitMQ ", conn.Properties["version"])
}

func openAsynq(interval time.Duration, roundUp bool) func(testing.TB) (conformance.Harness, string) {
	return func(tb testing.TB) (conformance.Harness, string) {
		tb.Helper()
		s := testenv.Redis(tb)
		h := twice(func() backend.Backend { return &asynqBackend{addr: s.Addr(), interval: interval, roundUp: roundUp} })
		h.Tick, h.Patience = time.Second, 20*time.Second
		return h, redisVersion(tb, s)
	}
}

func lacksBeanstalkd() error {
	_, err := testenv.FindBeanstalkd()
	return err
}

// openBeanstalkd gives each backend a server of its own: what others say to one may wake it.
func openBeanstalkd(roundUp bool) func(testing.TB) (conformance.Harness, string) {
	return func(tb testing.TB) (conformance.Harness, string) {
		tb.Helper()
		dir := tb.TempDir()
		return conformance.Harness{
			New: func(context.Context) (backend.Backend, func(), error) {
				addr, stop, err := launchBeanstalkd(dir)
				return &beanstalkdBackend{addr: addr, roundUp: roundUp}, stop, err
			},
			Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
				return &beanstalkdBackend{addr: b.(*beanstalkdBackend).addr, roundUp: roundUp}, nil, nil
			},
			Tick: time.Second,
		}, beanstalkdVersion(tb)
	}
}

func beanstalkdVersion(tb testing.TB) string {
	tb.Helper()
	binary, err := testenv.FindBeanstalkd()
	must(tb, err)
	out, err := exec.Command(binary, "-v").Output()
	must(tb, err)
	return strings.TrimSpace(string(out))
}

func startBeanstalkd(tb testing.TB) (addr string) {
	tb.Helper()
	testenv.Require(tb, lacksBeanstalkd())
	addr, stop, err := launchBeanstalkd(tb.TempDir())
	must(tb, err)
	tb.Cleanup(stop)
	return addr
}

// launchBeanstalkd starts one that takes bodies as large as delayq's. It has no binlog.
func launchBeanstalkd(dir string) (addr string, stop func(), err error) {
	binary, err := testenv.FindBeanstalkd()
	if err != nil {
		return "", nil, err
	}
	for range 10 { // somebody else may be faster to take the port
		if addr, stop, err = tryBeanstalkd(binary, dir); err == nil {
			break
		}
	}
	return addr, stop, err
}

func tryBeanstalkd(binary, dir string) (addr string, stop func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr = free.Addr().String()
	_ = free.Close()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(binary, "-l", host, "-p", port, "-z", strconv.Itoa(backend.MaxBody))
	p, err := testenv.StartProgram(cmd, filepath.Join(dir, port+".log"))
	if err != nil {
		return "", nil, err
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // ended by the condition
		if conn, err := net.Dial("tcp", addr); err == nil {
			return addr, func() { _ = p.Close() }, conn.Close()
		}
	}
	return "", nil, errors.Join(errors.New("beanstalkd takes no connections"), p.Close())
}

func openNATS(header bool) func(testing.TB) (conformance.Harness, string) {
	return func(tb testing.TB) (conformance.Harness, string) {
		tb.Helper()
		url := startNATS(tb)
		open := func() (backend.Backend, func(), error) {
			conn, err := nats.Connect(url)
			if err != nil {
				return nil, nil, err
			}
			return &natsBackend{conn: conn, header: header}, conn.Close, nil
		}
		return conformance.Harness{
			New:    func(context.Context) (backend.Backend, func(), error) { return open() },
			Attach: func(context.Context, backend.Backend) (backend.Backend, func(), error) { return open() },
			Tick:   time.Second,
		}, ""
	}
}

// startNATS embeds a server that takes bodies of some MiB.
func startNATS(tb testing.TB) (url string) {
	tb.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: tb.TempDir(), NoLog: true, NoSigs: true, MaxPayload: 8 << 20,
	})
	must(tb, err)
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(20 * time.Second) {
		tb.Fatal("the NATS server takes no connections")
	}
	return s.ClientURL()
}

func lacksPostgres() error {
	_, err := testenv.FindPostgres()
	return err
}

// openRiver gives each backend a database of its own: river elects one client of a database to schedule for all.
func openRiver(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	s := testenv.Postgres(tb, "max_connections=300", "fsync=off")
	version := migrate(tb, s.URL())
	var made atomic.Int64
	var pools sync.Map
	h := conformance.Harness{Tick: time.Second, Patience: 20 * time.Second}
	h.New = func(ctx context.Context) (backend.Backend, func(), error) {
		pool, err := copyDatabase(ctx, s.URL(), fmt.Sprint("trial", made.Add(1)))
		if err != nil {
			return nil, nil, err
		}
		b := &riverBackend{pool: pool}
		pools.Store(b, pool)
		return b, pool.Close, nil
	}
	h.Attach = func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
		pool, _ := pools.Load(b)
		return &riverBackend{pool: pool.(*pgxpool.Pool)}, nil, nil
	}
	return h, "PostgreSQL " + version
}

// openGue gives each backend a database of its own, which its schema is copied to. A station has 64 connections, and a check up to two.
func openGue(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	s := testenv.Postgres(tb, "max_connections=1500", "fsync=off")
	version := installGue(tb, s.URL())
	var made atomic.Int64
	h := conformance.Harness{Tick: time.Second, Patience: 20 * time.Second}
	h.New = func(ctx context.Context) (backend.Backend, func(), error) {
		pool, err := copyDatabase(ctx, s.URL(), fmt.Sprint("trial", made.Add(1)))
		if err != nil {
			return nil, nil, err
		}
		b, err := newGueBackend(pool)
		return b, pool.Close, err
	}
	h.Attach = func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
		second, err := newGueBackend(b.(*gueBackend).pool)
		return second, nil, err
	}
	return h, "PostgreSQL " + version
}

// installGue makes gue's table in the database that the others are copies of.
func installGue(tb testing.TB, url string) (version string) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	must(tb, err)
	defer func() { must(tb, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, schemaOf(tb, gueModule, "migrations/schema.sql"))
	must(tb, err)
	must(tb, conn.QueryRow(ctx, "SHOW server_version").Scan(&version))
	return strings.Fields(version)[0]
}

// migrate makes river's tables in the database that the others are copies of.
func migrate(tb testing.TB, url string) (version string) {
	tb.Helper()
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	must(tb, err)
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	must(tb, err)
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(tb, err)
	must(tb, pool.QueryRow(ctx, "SHOW server_version").Scan(&version))
	return strings.Fields(version)[0]
}

var copying sync.Mutex // of a database that nobody else may look at meanwhile

func copyDatabase(ctx context.Context, url, name string) (*pgxpool.Pool, error) {
	copying.Lock()
	defer copying.Unlock()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	source := config.ConnConfig.Database
	config.ConnConfig.Database, config.MaxConns = "template1", 20
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, source))
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return nil, err
	}
	config.ConnConfig.Database = name
	return pgxpool.NewWithConfig(ctx, config)
}

// openGoqite gives each backend a file of its own.
func openGoqite(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	dir, schema := tb.TempDir(), schemaOf(tb, goqiteModule, "schema_sqlite.sql")
	var made atomic.Int64
	open := func(path string) (*goqiteBackend, error) {
		u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)"}
		db, err := sql.Open("sqlite3", u.String())
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		return &goqiteBackend{path: path, db: db}, nil
	}
	return conformance.Harness{
		New: func(ctx context.Context) (backend.Backend, func(), error) {
			b, err := open(filepath.Join(dir, fmt.Sprintf("%d.db", made.Add(1))))
			if err == nil {
				_, err = b.db.ExecContext(ctx, schema)
			}
			return b, nil, err
		},
		Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
			second, err := open(b.(*goqiteBackend).path)
			return second, nil, err
		},
	}, ""
}

// schemaOf reads a file of a module.
func schemaOf(tb testing.TB, module, file string) string {
	tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	must(tb, err)
	schema, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
	must(tb, err)
	return string(schema)
}

// openBacklite gives each backend a directory of its own. A second client would not learn of the tasks that the first one adds.
func openBacklite(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	dir := tb.TempDir()
	return conformance.Harness{
		New: func(context.Context) (backend.Backend, func(), error) {
			own, err := os.MkdirTemp(dir, "trial")
			return &backliteBackend{dir: own}, nil, err
		},
	}, ""
}

func lacksJava() error {
	_, err := testenv.Java()
	if err != nil {
		return err
	}
	_, err = testenv.Maven()
	return err
}

const redissonVersion = "3.52.0"

func openRedissonJava(tb testing.TB) (conformance.Harness, string) {
	tb.Helper()
	s := testenv.Redis(tb)
	jvm := interop.Start(tb, redissonVersion, s.URL())
	return conformance.Harness{
		New: func(context.Context) (backend.Backend, func(), error) { return &redissonBackend{jvm: jvm}, nil, nil },
	}, "Redisson " + jvm.Version() + ", " + redisVersion(tb, s)
}
