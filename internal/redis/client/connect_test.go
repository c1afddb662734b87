package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

func connect(ctx context.Context, t *testing.T, rawURL string) (redis.UniversalClient, error) {
	t.Helper()
	target, err := parse(t, rawURL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := target.Connect(ctx)
	if err == nil {
		t.Cleanup(func() { _ = client.Close() })
	}
	return client, err
}

func mustConnect(t *testing.T, rawURL string) redis.UniversalClient {
	t.Helper()
	client, err := connect(t.Context(), t, rawURL)
	if err != nil {
		t.Fatalf("%s: %v", rawURL, err)
	}
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatalf("%s: %v", rawURL, err)
	}
	return client
}

// mustNotConnect wants an error with all these parts, soon, and without the passwords that the
// tests use.
func mustNotConnect(t *testing.T, rawURL string, parts ...string) {
	t.Helper()
	began := time.Now()
	_, err := connect(t.Context(), t, rawURL)
	if err == nil {
		t.Fatalf("%s: no error", rawURL)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: no %q in: %v", rawURL, part, err)
		}
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("%s: a password in: %v", rawURL, err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("%s: the error took %s", rawURL, took)
	}
}

// configure changes settings that testenv needs unchanged until the server runs.
func configure(t *testing.T, server *testenv.RedisServer, command ...any) {
	t.Helper()
	if err := server.Client(t).Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestConnectPlain(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	mustConnect(t, "zsetpoll://"+server.Addr()+"/orders")
	mustConnect(t, strings.Replace("zsetpoll://"+server.Addr()+"/orders", "127.0.0.1", "localhost", 1))
}

func TestConnectToADatabase(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	mustConnect(t, "zsetpoll://"+server.Addr()+"/orders?db=3")
	keyspace := server.Client(t).InfoMap(t.Context(), "keyspace").Val()["Keyspace"]
	if len(keyspace) != 1 || keyspace["db3"] == "" {
		t.Errorf("keys in %v, want db3", keyspace)
	}
	mustNotConnect(t, "zsetpoll://"+server.Addr()+"/orders?db=99", "connecting to "+server.Addr()+": ", "DB index is out of range")
}

func TestConnectWithAPassword(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	configure(t, server, "config", "set", "requirepass", "hunter2@/?")
	good := url.UserPassword("", "hunter2@/?").String()
	mustConnect(t, "zsetpoll://"+good+"@"+server.Addr()+"/orders")
	mustConnect(t, "zsetpoll://default"+good+"@"+server.Addr()+"/orders")
	at := "connecting to " + server.Addr() + ": "
	mustNotConnect(t, "zsetpoll://:hunter3@"+server.Addr()+"/orders", at+"WRONGPASS")
	mustNotConnect(t, "zsetpoll://other:hunter2@"+server.Addr()+"/orders", at+"WRONGPASS")
	mustNotConnect(t, "zsetpoll://"+server.Addr()+"/orders", at+"NOAUTH")
}

func TestConnectAsAUser(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	configure(t, server, "acl", "setuser", "worker", "on", ">hunter2", "~*", "&*", "+@all")
	configure(t, server, "acl", "setuser", "bare", "on", ">hunter2")
	client := mustConnect(t, "zsetpoll://worker:hunter2@"+server.Addr()+"/orders")
	if who := client.Do(t.Context(), "acl", "whoami").Val(); who != "worker" {
		t.Errorf("connected as %v", who)
	}
	mustNotConnect(t, "zsetpoll://worker:hunter3@"+server.Addr()+"/orders", "WRONGPASS")
	mustNotConnect(t, "zsetpoll://bare:hunter2@"+server.Addr()+"/orders", "NOPERM")
}

// A server, or a proxy, without HELLO and AUTH repeats their arguments.
func TestConnectKeepsThePasswordOutOfTheServersError(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Directive("rename-command", "HELLO", ""), testenv.Directive("rename-command", "AUTH", ""))
	mustConnect(t, "zsetpoll://"+server.Addr()+"/orders")
	mustNotConnect(t, "zsetpoll://:hunter2@"+server.Addr()+"/orders", "connecting to "+server.Addr()+": ", "unknown command 'auth'")
}

func TestDiscreet(t *testing.T) {
	t.Parallel()
	target := &Target{Options: redis.UniversalOptions{Password: "hunter2", SentinelPassword: "pair"}}
	for said, want := range map[string]string{
		"ERR hunter2 is no command":                                     "ERR (hidden) is no command",
		"ERR unknown command, with args hunter2":                        "ERR unknown command",
		"WRONGPASS invalid username-password pair or user is disabled.": "WRONGPASS invalid username-password pair or user is disabled.",
	} {
		if got := target.discreet(reply(said)); got.Error() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestConnectWithoutServer(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	server.Kill()
	addr := server.Addr()
	mustNotConnect(t, "zsetpoll://:hunter2@"+addr+"/orders", "connecting to "+addr+": ", "connection refused")
	mustNotConnect(t, "zsetpoll://:hunter2@"+addr+"/orders?cluster=true&addr="+addr, "connecting to the Cluster at "+addr+", "+addr+": ", "connection refused")
	mustNotConnect(t, "zsetpoll://:hunter2@"+addr+"/orders?master=main", `connecting to master "main" of Sentinel at `+addr+": ", "connection refused")
	mustNotConnect(t, "zsetpoll://no-such-host.invalid/orders", "connecting to no-such-host.invalid:6379: ", "lookup no-such-host.invalid")
	mustNotConnect(t, "zsetpoll:///orders?socket=/no/such", "connecting to /no/such: ", "no such file")
}

func TestConnectThroughASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	testenv.Redis(t, testenv.Directive("unixsocket", path))
	mustConnect(t, "zsetpoll:///orders?socket="+url.QueryEscape(path))
}

func TestConnectHonoursTheContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, query := range []string{"", "&tls=true", "&cluster=true", "&master=main"} {
		rawURL := fmt.Sprintf("zsetpoll://%s/orders?dial_timeout=1m&read_timeout=1m%s", silent.Addr(), query)
		t.Run("deadline"+query, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			mustGiveUp(ctx, t, rawURL, context.DeadlineExceeded)
		})
		t.Run("cancel"+query, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			mustGiveUp(ctx, t, rawURL, context.Canceled)
		})
	}
}

func mustGiveUp(ctx context.Context, t *testing.T, rawURL string, want error) {
	t.Helper()
	began := time.Now()
	_, err := connect(ctx, t, rawURL)
	if took := time.Since(began); !errors.Is(err, want) || took > 30*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}

func TestConnectToACluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t)
	addrs := cluster.Addrs()
	mustConnect(t, "zsetpoll://"+addrs[0]+"/orders?cluster=true")
	cluster.Nodes()[0].Kill()
	client, err := connect(t.Context(), t, "zsetpoll://"+addrs[0]+"/orders?cluster=true&addr="+addrs[1]+"&addr="+addrs[2])
	if err != nil {
		t.Fatalf("with one node of three down: %v", err)
	}
	if _, ok := client.(*redis.ClusterClient); !ok {
		t.Errorf("got a %T", client)
	}
}

func TestConnectToAClusterThatIsNone(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	mustNotConnect(t, "zsetpoll://"+server.Addr()+"/orders?cluster=true", "cluster support disabled")
}
