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
	sharedRedis   = shared[*runningRedis]{start: startShared}
	sharedCluster = shared[*localCluster]{start: startSharedCluster}
	mainRuns      atomic.Bool
)

// Main runs the tests of a package, stops the shared servers, and fails when a goroutine is left:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
func Main(m *testing.M, opts ...goleak.Option) { goleak.VerifyTestMain(tests{m}, opts...) }

// SharedRedis returns the one server of the test process, for tests that keep to keys of their
// own. The package's TestMain must call Main, which stops it.
func SharedRedis(tb testing.TB) *RedisServer {
	tb.Helper()
	running := sharedRedis.get(tb)
	return &RedisServer{tb: tb, url: running.url}
}

// SharedRedisCluster returns the one Cluster of the test process; see SharedRedis.
func SharedRedisCluster(tb testing.TB) *Cluster {
	tb.Helper()
	cluster := sharedCluster.get(tb)
	return &Cluster{tb: tb, cluster: cluster}
}

func startShared() (*runningRedis, func() error, error) {
	running, err := provideRedis(nil)
	if err != nil {
		return nil, nil, err
	}
	return running, running.stop, nil
}

func startSharedCluster() (*localCluster, func() error, error) {
	cluster, err := launchCluster(nil)
	if err != nil {
		return nil, nil, err
	}
	return cluster, cluster.remove, nil
}

// shared is a server that starts when it is first asked for.
type shared[T any] struct {
	start func() (T, func() error, error)
	once  sync.Once
	value T
	stop  func() error
	err   error
}

func (s *shared[T]) get(tb testing.TB) T {
	tb.Helper()
	if !mainRuns.Load() {
		tb.Fatalf("a shared server needs func TestMain(m *testing.M) { testenv.Main(m) } in the package, which stops it")
	}
	s.once.Do(func() { s.value, s.stop, s.err = s.start() })
	mustStart(tb, s.err)
	return s.value
}

func (s *shared[T]) end() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// tests is the testing.M that goleak gets: servers must end before it checks.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	mainRuns.Store(true)
	code := t.m.Run()
	if err := errors.Join(sharedRedis.end(), sharedCluster.end()); err != nil {
		fmt.Fprintln(os.Stderr, "stopping a shared server:", err)
		return max(code, 1)
	}
	return code
}
