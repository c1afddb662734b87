package testenv

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

var (
	sharedRedis    = shared[*running]{start: func() (*running, error) { return provideRedis(nil) }}
	sharedCluster  = shared[*localCluster]{start: func() (*localCluster, error) { return launchCluster(nil) }}
	sharedRabbit   = shared[*running]{start: func() (*running, error) { return provideRabbit(rabbitSettings{}) }}
	sharedPostgres = shared[*PostgresServer]{start: func() (*PostgresServer, error) {
		bin, err := FindPostgres()
		if err != nil {
			return nil, err
		}
		return launchPostgres(bin, []string{"max_connections=400"}, (*PostgresServer).initialize)
	}}
	mainRuns atomic.Bool
)

// Main runs the tests of a package, stops the shared servers, and fails when a goroutine is left:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
func Main(m *testing.M, opts ...goleak.Option) { goleak.VerifyTestMain(tests{m}, opts...) }

// SharedRedis returns the one server of the test process, for tests that keep to keys of their
// own. The package's TestMain must call Main, which stops it.
func SharedRedis(tb testing.TB) *RedisServer {
	tb.Helper()
	return &RedisServer{handle{tb: tb, url: sharedRedis.get(tb).url, kind: redisKind}}
}

// SharedRedisCluster returns the one Cluster of the test process; see SharedRedis.
func SharedRedisCluster(tb testing.TB) *Cluster {
	tb.Helper()
	return &Cluster{tb: tb, cluster: sharedCluster.get(tb)}
}

// SharedRabbitMQ returns the one broker of the test process, for tests that keep to a Vhost of
// their own; see SharedRedis.
func SharedRabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	r := sharedRabbit.get(tb)
	return &RabbitServer{handle: handle{tb: tb, url: r.url, kind: rabbitKind}, control: r.control}
}

// SharedPostgres returns the one server of the test process, for tests that keep to tables of their
// own; see SharedRedis.
func SharedPostgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	return sharedPostgres.get(tb)
}

// shared is a server that starts when it is first asked for.
type shared[T interface{ remove() error }] struct {
	start   func() (T, error)
	once    sync.Once
	value   T
	started bool
	err     error
}

func (s *shared[T]) get(tb testing.TB) T {
	tb.Helper()
	if !mainRuns.Load() {
		tb.Fatalf("a shared server needs func TestMain(m *testing.M) { testenv.Main(m) } in the package, which stops it")
	}
	s.once.Do(func() {
		s.value, s.err = s.start()
		s.started = s.err == nil
	})
	Require(tb, s.err)
	return s.value
}

func (s *shared[T]) end() error {
	if !s.started {
		return nil
	}
	return s.value.remove()
}

// tests is the testing.M that goleak gets: servers must end before it checks.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	mainRuns.Store(true)
	code := t.m.Run()
	if err := errors.Join(sharedRedis.end(), sharedCluster.end(), sharedRabbit.end(), sharedPostgres.end()); err != nil {
		fmt.Fprintln(os.Stderr, "stopping a shared server:", err)
		return max(code, 1)
	}
	return code
}
