package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedisEndsWithItsTest(t *testing.T) {
	var s *RedisServer
	var client *redis.Client
	t.Run("its test", func(t *testing.T) {
		s = Redis(t, Private())
		client = s.Client(t)
		mustPing(t, client)
		must(t, os.WriteFile(s.server.(*localRedis).dir+"/dump.rdb", []byte("left"), 0o600))
	})
	if err := client.Ping(context.Background()).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("the client is not closed: %v", err)
	}
	if !s.server.(*localRedis).ended() {
		t.Error("the server still runs")
	}
	if _, err := os.Stat(s.server.(*localRedis).dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
}

func TestOptions(t *testing.T) {
	s := Redis(t, MaxMemory("64mb", "allkeys-lru"), AOF(), Directive("hz", "50"), Directive("notify-keyspace-events", ""))
	client := s.Client(t)
	for name, want := range map[string]string{
		"maxmemory": "67108864", "maxmemory-policy": "allkeys-lru", "hz": "50",
		"appendonly": "yes", "appendfsync": "everysec", "save": "", "notify-keyspace-events": "",
	} {
		got, err := client.ConfigGet(context.Background(), name).Result()
		must(t, err)
		if got[name] != want {
			t.Errorf("%s is %q; want %q", name, got[name], want)
		}
	}
}

func TestFlags(t *testing.T) {
	set := newSettings([]Option{MaxMemory("1mb", "noeviction")})
	want := "--save||--appendonly|no|--maxmemory|1mb|--maxmemory-policy|noeviction"
	if got := strings.Join(set.flags(), "|"); got != want {
		t.Errorf("flags %q; want %q", got, want)
	}
}

func TestWhatARestartKeeps(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		opts []Option
		end  func(*RedisServer)
		left int64
	}{
		"killed":                     {[]Option{AOF()}, func(s *RedisServer) { s.Kill(); s.Kill() }, 1000}, // the second does no harm
		"killed without persistence": {nil, func(s *RedisServer) { s.Kill() }, 0},
		"paused":                     {[]Option{AOF()}, func(s *RedisServer) { s.Pause() }, 1000},
	} {
		s := Redis(t, append(c.opts, Private())...)
		client, addr := s.Client(t, oneTry), s.Addr()
		mustFill(t, client, 1000)
		if c.left > 0 {
			awaitWritten(t, client)
		}
		c.end(s)
		s.Restart()
		if s.Addr() != addr {
			t.Errorf("%s: it came back at %s; want %s", name, s.Addr(), addr)
		}
		if n, err := s.Client(t).DBSize(ctx).Result(); n != c.left || err != nil {
			t.Errorf("%s: %d keys, %v; want %d", name, n, err, c.left)
		}
	}
}

func mustFill(t *testing.T, client redis.UniversalClient, keys int) {
	t.Helper()
	for i := range keys {
		must(t, client.Set(context.Background(), fmt.Sprint("key", i), i, 0).Err())
	}
}

// awaitWritten waits while Redis holds back writes because the disk is busy.
func awaitWritten(t *testing.T, client *redis.Client) {
	t.Helper()
	must(t, await("the append-only file to be written", func() (bool, error) {
		info, err := client.Info(context.Background(), "persistence").Result()
		if err != nil {
			return false, err
		}
		return false, lacks(info, []string{"aof_buffer_length:0"})
	}))
}

func TestPauseAndResume(t *testing.T) {
	ctx := context.Background()
	s := Redis(t, Private())
	client := s.Client(t, hasty)
	mustPing(t, s.Client(t))
	s.Pause()
	var timeout net.Error
	if err := client.Ping(ctx).Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a paused server gives %v; want a timeout", err)
	}
	s.Resume()
	mustPing(t, s.Client(t))
}

func TestKillOfAPausedServer(t *testing.T) {
	s := Redis(t, Private())
	s.Pause()
	s.Kill()
	if err := s.Client(t, oneTry).Ping(context.Background()).Err(); err == nil {
		t.Fatal("a killed server replies")
	}
	for name, f := range map[string]func(*handle){"pause": (*handle).Pause, "resume": (*handle).Resume} {
		r := record(t, func(tb testing.TB) { f(s.in(tb)) })
		if !strings.Contains(r.failed, "cannot "+name) || !strings.Contains(r.failed, os.ErrProcessDone.Error()) {
			t.Errorf("%s of a dead server ended with %q", name, r.failed)
		}
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	began := time.Now()
	r := record(t, func(tb testing.TB) { Redis(tb, Private(), Directive("no-such-directive", "1")) })
	if !strings.Contains(r.failed, ">>> 'no-such-directive") { // as all versions log it
		t.Errorf("failed with %q; want the log in it", r.failed)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it took %v to see that the server had ended", took)
	}
}

func TestPortTaken(t *testing.T) {
	l, err := listen()
	must(t, err)
	defer func() { must(t, l.Close()) }()
	own := local{name: "redis-server", dir: t.TempDir(), port: l.Addr().(*net.TCPAddr).Port}
	r := &localRedis{local: own, binary: findServer("redis-server"), set: newSettings(nil)}
	if err := r.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("start on a port in use gives %v", err)
	}
}

func TestAnotherServerIsNotOurs(t *testing.T) {
	s, other := Redis(t, Private()), Redis(t, Private())
	mixed := &localRedis{local: local{port: other.server.(*localRedis).port, process: s.server.(*localRedis).process}}
	if err := mixed.isUp(); err == nil || !strings.Contains(err.Error(), "replies instead of") {
		t.Errorf("another server on the port gives %v", err)
	}
	mustFill(t, s.Client(t), 1)
	if n, err := other.Client(t).DBSize(context.Background()).Result(); n != 0 || err != nil {
		t.Errorf("the other server has the key: %d, %v", n, err)
	}
}
