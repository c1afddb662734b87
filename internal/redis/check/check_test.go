package check

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/testenv"
)

// lines is a log that keeps level, message and servers of each line.
type lines struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%s", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	return nil
}

const tooSlow = "DEBUG delayq: the start-up check could not ask the server err=context deadline exceeded"

// checked returns the log of a server's check. On a busy machine a check may end before the server replies:
// then it comes again.
func checked(t *testing.T, client redis.UniversalClient) (all []string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if all = checkedOnce(t, client); !slices.Contains(all, tooSlow) || time.Now().After(end) {
			return all
		}
	}
}

func checkedOnce(t *testing.T, client redis.UniversalClient) []string {
	t.Helper()
	l := &lines{Handler: slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})}
	Check(t.Context(), new(call.Group), client, slog.New(l))
	return l.all
}

// mustLog wants one line for each of some texts, in this order.
func mustLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const nothing = "WARN delayq: the server keeps nothing on disk: a restart loses every message; run CONFIG SET appendonly yes"
	for name, tt := range map[string]struct {
		options []testenv.Option
		want    []string
	}{
		"good": {[]testenv.Option{testenv.AOF(), testenv.MaxMemory("10mb", "noeviction")}, nil},
		"evicts": {
			[]testenv.Option{testenv.AOF(), testenv.MaxMemory("10mb", "allkeys-lru")},
			[]string{"WARN delayq: maxmemory-policy allkeys-lru drops messages without a trace when the server reaches its maxmemory of 10485760 bytes; " +
				"run CONFIG SET maxmemory-policy noeviction"},
		},
		"would evict": {
			[]testenv.Option{testenv.AOF(), testenv.MaxMemory("0", "allkeys-random")},
			[]string{"INFO delayq: maxmemory-policy allkeys-random drops messages once there is a memory limit; harmless for now"},
		},
		"keeps nothing": {[]testenv.Option{testenv.Private()}, []string{nothing}},
		"both": {
			[]testenv.Option{testenv.MaxMemory("10mb", "allkeys-lru")},
			[]string{"WARN delayq: maxmemory-policy allkeys-lru drops", nothing},
		},
		"snapshots": {
			[]testenv.Option{testenv.Directive("save", "3600", "1")},
			[]string{"INFO delayq: the server writes snapshots only"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustLog(t, checked(t, testenv.Redis(t, tt.options...).Client(t)), tt.want...)
		})
	}
}

func TestCheckNamesTheServer(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	if got := checked(t, server.Client(t)); len(got) != 1 || !strings.HasSuffix(got[0], " servers="+server.Addr()) {
		t.Errorf("got %q", got)
	}
}

// asUser returns a client of a user that has these rights.
func asUser(t *testing.T, server *testenv.RedisServer, rights ...string) *redis.Client {
	t.Helper()
	rule := append([]any{"acl", "setuser", "worker", "on", ">secret", "~*", "&*"}, make([]any, len(rights))...)
	for i, r := range rights {
		rule[len(rule)-len(rights)+i] = r
	}
	if err := server.Client(t).Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	return server.Client(t, func(o *redis.Options) { o.Username, o.Password = "worker", "secret" })
}

func TestCheckWithoutConfig(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.MaxMemory("10mb", "allkeys-lru"))
	mustLog(t, checked(t, asUser(t, server, "+@all", "-config")),
		"WARN delayq: maxmemory-policy allkeys-lru drops messages",
		"DEBUG delayq: the server does not tell whether it keeps messages on disk")
}

func TestCheckWithoutInfo(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.MaxMemory("10mb", "allkeys-lru"))
	mustLog(t, checked(t, asUser(t, server, "+@all", "-info")),
		"DEBUG delayq: the server does not tell its version",
		"DEBUG delayq: the server does not tell whether it is a replica",
		"WARN delayq: maxmemory-policy allkeys-lru drops messages",
		"WARN delayq: the server keeps nothing on disk")
}

func TestCheckOfAServerThatTellsNothing(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	mustLog(t, checked(t, asUser(t, server, "+@all", "-info", "-config")),
		"DEBUG delayq: the start-up check could not ask the server err=asking the server for its state: NOPERM")
}

func TestCheckOfAReplica(t *testing.T) {
	t.Parallel()
	master := testenv.Redis(t, testenv.AOF())
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := testenv.Redis(t, testenv.AOF(), testenv.Directive("replicaof", host, port))
	mustLog(t, checked(t, replica.Client(t)),
		"WARN delayq: the server is a read-only replica: it refuses every message; connect to its master at "+master.Addr())
}

func TestCheckOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t, testenv.AOF())

	mustLog(t, checked(t, cluster.Client(t)))
	one := cluster.Nodes()[1].Client(t)
	mustLog(t, checked(t, one), "WARN delayq: "+clusterText)

	for _, n := range cluster.Nodes()[1:] {
		if err := n.Client(t).ConfigSet(t.Context(), "appendonly", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	got := checked(t, cluster.Client(t))
	bad := slices.Sorted(slices.Values([]string{cluster.Nodes()[1].Addr(), cluster.Nodes()[2].Addr()}))
	if len(got) != 1 || !strings.HasSuffix(got[0], " servers="+strings.Join(bad, ", ")) {
		t.Errorf("got %q", got)
	}
}

func TestCheckOfARing(t *testing.T) {
	t.Parallel()
	a, b := testenv.Redis(t, testenv.AOF()), testenv.Redis(t, testenv.Private())
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr(), "b": b.Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	got := checked(t, ring)
	if len(got) != 1 || !strings.HasSuffix(got[0], " servers="+b.Addr()) {
		t.Errorf("got %q", got)
	}
}

func TestCheckNeverTakesLong(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client := server.Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	server.Pause()
	defer server.Resume()
	began := time.Now()
	got := checkedOnce(t, client)
	if took := time.Since(began); took > checkWithin+20*time.Second {
		t.Errorf("the check took %s", took)
	}
	mustLog(t, got, tooSlow)
}

func TestCheckOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client := server.Client(t)
	server.Kill()
	mustLog(t, checkedOnce(t, client), "DEBUG delayq: the start-up check could not ask the server err=")
}

func TestCheckAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	Check(ctx, new(call.Group), client, slog.New(slog.DiscardHandler))
}
