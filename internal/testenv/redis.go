package testenv

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const redisURLVar = "DELAYQ_REDIS_URL"

var redisKind = kind{
	name: "redis", noun: "server", program: "redis-server", urlVar: redisURLVar, example: "redis://localhost:6379/15",
	private: "Redis(tb, Private())", find: findServer, check: checkRedis,
}

// RedisServer is a test's handle on a Redis server.
type RedisServer struct{ handle }

// Redis returns a server that no other test uses, and that ends with the test. Without options
// that may be the server of DELAYQ_REDIS_URL, which others use and which may hold anything.
func Redis(tb testing.TB, opts ...Option) *RedisServer {
	tb.Helper()
	r, err := provideRedis(opts)
	return &RedisServer{handleOn(tb, redisKind, r, err)}
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

// busyTimeout is for a machine that stands still for some seconds: what is sent again after the 3 s of
// go-redis may have an unknown outcome.
const busyTimeout = 30 * time.Second

// Client returns a client of the server, which is closed when tb ends. It waits for replies for longer than
// go-redis does unless tune changes that.
func (s *RedisServer) Client(tb testing.TB, tune ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	opt := s.Options()
	opt.ReadTimeout, opt.WriteTimeout = busyTimeout, busyTimeout
	for _, f := range tune {
		f(opt)
	}
	client := redis.NewClient(opt)
	tb.Cleanup(func() { _ = client.Close() }) // the test may have closed it
	return client
}

func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "of a URL"
	}
	return u.Redacted()
}

func provideRedis(opts []Option) (*running, error) {
	set := newSettings(opts)
	return provide(redisKind, set.private, len(opts) > 0,
		func() (*running, error) {
			r, err := launchRedis(findServer("redis-server"), set)
			if err != nil {
				return nil, err
			}
			return &running{url: r.url(), server: r, stop: r.remove}, nil
		},
		func() (*running, error) { return dockerRedis(set) })
}

// checkRedis checks that the server of a URL can be reached: a URL that is set must be usable.
func checkRedis(url string) error {
	opt, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", redisURLVar, err)
	}
	client := redis.NewClient(opt)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("asking the server of %s: %w", redisURLVar, err)
	}
	return nil
}

// localRedis is a redis-server with the settings to start it again.
type localRedis struct {
	local
	binary string
	set    settings
	bus    int
}

func launchRedis(binary string, set settings) (*localRedis, error) {
	l, err := newLocal("redis-server")
	if err != nil {
		return nil, err
	}
	r := &localRedis{local: l, binary: binary, set: set}
	return r, r.launch(func() (err error) {
		if r.port, err = freePort(); err != nil {
			return err
		}
		if r.bus, err = freePort(); err != nil {
			return err
		}
		return r.start()
	})
}

// start returns when the server accepts commands.
func (r *localRedis) start() error {
	file := r.file("redis.conf")
	if err := os.WriteFile(file, []byte(r.config()), 0o600); err != nil {
		return fmt.Errorf("configuring redis-server: %w", err)
	}
	cmd := exec.Command(r.binary, file)
	cmd.Env = r.set.environment()
	return r.run(cmd, r.isUp, "Address already in use")
}

func (r *localRedis) config() string {
	own := settings{}
	own.add("bind", localhost)
	own.add("port", strconv.Itoa(r.port))
	own.add("dir", r.dir)
	for _, d := range r.set.config {
		if d.name == "cluster-enabled" {
			own.add("cluster-port", strconv.Itoa(r.bus))
		}
	}
	return own.text() + r.set.text()
}

// isUp checks that the server on the port is ours.
func (r *localRedis) isUp() error {
	pid, err := ping(r.addr())
	if err == nil && pid != r.pid {
		err = fmt.Errorf("process %d replies instead of %d", pid, r.pid)
	}
	return err
}

// ping returns the process id of a server that is ready to serve. A client of Redis would wait
// longer after each failure.
func ping(addr string) (pid int, err error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // of an open connection this cannot fail
	if _, err = io.WriteString(conn, "PING\r\nINFO server\r\nQUIT\r\n"); err != nil {
		return 0, err
	}
	reply, err := io.ReadAll(conn)
	if err != nil {
		return 0, err
	}
	pong, info, _ := bytes.Cut(reply, []byte("\r\n"))
	if string(pong) != "+PONG" {
		return 0, fmt.Errorf("it replies %q to a PING", pong)
	}
	_, info, _ = bytes.Cut(info, []byte("process_id:"))
	id, _, _ := bytes.Cut(info, []byte("\r\n"))
	return strconv.Atoi(string(id))
}

func (r *localRedis) url() string { return "redis://" + r.addr() }

func (r *localRedis) restart() error {
	if err := r.process.stop(); err != nil {
		return err
	}
	return r.start()
}

// withClient calls f with a client of the server and a context that bounds it.
func (r *localRedis) withClient(f func(ctx context.Context, client *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: r.addr()})
	defer func() { _ = client.Close() }()
	return f(ctx, client)
}
