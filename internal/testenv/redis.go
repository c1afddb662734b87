package testenv

import (
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a test's handle on a Redis server. Its methods end the test when they fail, so
// only the test's own goroutine may call them.
type RedisServer struct {
	tb    testing.TB
	url   string
	local *localRedis // nil when the test must leave the server alone
}

// Redis returns a server that no other test uses, and that ends with the test. Without options
// that may be the server of DELAYQ_REDIS_URL, which others use and which may hold anything.
func Redis(tb testing.TB, opts ...Option) *RedisServer {
	tb.Helper()
	running, err := provideRedis(opts)
	mustStart(tb, err)
	tb.Cleanup(func() { mustStop(tb, running.stop()) })
	return &RedisServer{tb: tb, url: running.url, local: running.local}
}

func mustStop(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Errorf("removing a server: %v", err)
	}
}

// URL is where the server is, for redis.ParseURL.
func (s *RedisServer) URL() string { return s.url }

// Addr is the server's host and port.
func (s *RedisServer) Addr() string { return s.Options().Addr }

// Options returns fresh options for a client of the server.
func (s *RedisServer) Options() *redis.Options {
	s.tb.Helper()
	opt, err := redis.ParseURL(s.url)
	if err != nil {
		s.tb.Fatalf("parsing the URL of the server: %v", err)
	}
	return opt
}

// Client returns a client of the server, which is closed when tb ends.
func (s *RedisServer) Client(tb testing.TB, tune ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	opt := s.Options()
	for _, f := range tune {
		f(opt)
	}
	client := redis.NewClient(opt)
	tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

// Private reports whether the test may kill, pause and restart the server. It may not if that is
// from a URL, from Docker or shared with other tests; the option Private asks for one of its own.
func (s *RedisServer) Private() bool { return s.local != nil }

// Kill ends the server at once (SIGKILL), as a crash would.
func (s *RedisServer) Kill() {
	s.tb.Helper()
	s.do("kill", func() error { return s.local.process.kill() })
}

// Pause stops the server (SIGSTOP): connections stay open and get no replies.
func (s *RedisServer) Pause() {
	s.tb.Helper()
	s.do("pause", func() error { return s.local.process.pause() })
}

// Resume lets a paused server go on (SIGCONT).
func (s *RedisServer) Resume() {
	s.tb.Helper()
	s.do("resume", func() error { return s.local.process.resume() })
}

// Restart starts the server again on its port, with the data that it has kept (see AOF), and
// returns when it accepts commands. A server that still runs is shut down first.
func (s *RedisServer) Restart() {
	s.tb.Helper()
	s.do("restart", func() error { return s.local.restart() })
}

func (s *RedisServer) do(what string, f func() error) {
	s.tb.Helper()
	if !s.Private() {
		s.tb.Fatalf("cannot %s the server %s: it is not this test's own; Redis(tb, Private()) gives one", what, redacted(s.url))
	}
	if err := f(); err != nil {
		s.tb.Fatalf("cannot %s the server: %v", what, err)
	}
}

func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return redisURLVar
	}
	return u.Redacted()
}
