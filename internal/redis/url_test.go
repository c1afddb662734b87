package redis_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	_ "github.com/delayq/delayq/keyspace"
	_ "github.com/delayq/delayq/redisson"
	_ "github.com/delayq/delayq/zsetpoll"
)

func TestOpenURL(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	for _, b := range backends {
		for _, query := range b.queries {
			t.Run(b.scheme+query, func(t *testing.T) {
				t.Parallel()
				redistest.RoundTrip(t, b.scheme+"://"+server.Addr()+"/orders-"+b.scheme+query)
			})
		}
	}
}

// The queue of a URL as REDIS_URL has them is the one that zsetpoll's own URL names.
func TestOpenRedisURL(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	server := testenv.Redis(t, testenv.AOF(), testenv.Directive("unixsocket", socket))
	for rawURL, own := range map[string]string{
		"redis://" + server.Addr():             "zsetpoll://" + server.Addr() + "/named",
		"redis://" + server.Addr() + "/0":      "zsetpoll://" + server.Addr() + "/named",
		"redis://" + server.Addr() + "/3":      "zsetpoll://" + server.Addr() + "/named?db=3",
		"zsetpoll://" + server.Addr():          "zsetpoll://" + server.Addr() + "/named",
		"unix://" + socket:                     "zsetpoll:///named?socket=" + socket,
		"unix://" + socket + "?db=2&prefix=us": "zsetpoll://" + server.Addr() + "/named?db=2&prefix=us",
	} {
		ctx := redistest.Deadline(t)
		q, err := delayq.Open(ctx, rawURL, delayq.Named("named"))
		must(t, err)
		id, err := q.Push(ctx, nil)
		must(t, err)
		must(t, q.Close())
		q, err = delayq.Open(ctx, own)
		must(t, err)
		d, err := q.Receive(ctx)
		must(t, err)
		if d.ID != id {
			t.Errorf("%s: %s has message %s, want %s", rawURL, own, d.ID, id)
		}
		must(t, d.Ack(ctx))
		must(t, q.Close())
	}
	_, err := delayq.Open(t.Context(), "redis://"+server.Addr()+"/0")
	if !errors.Is(err, delayq.ErrInvalid) || !strings.Contains(err.Error(), `Named("orders")`) {
		t.Errorf("without a name: %v", err)
	}
}

func TestOpenURLOfACluster(t *testing.T) {
	t.Parallel()
	addrs := testenv.RedisCluster(t, testenv.AOF()).Addrs()
	for _, b := range backends {
		redistest.RoundTrip(t, fmt.Sprintf("%s://%s/orders-%s?cluster=true&addr=%s", b.scheme, addrs[1], b.scheme, addrs[2]))
	}
	redistest.RoundTrip(t, fmt.Sprintf("redis://%s/0?queue=orders&cluster=true&addr=%s", addrs[1], addrs[2]))
}

func TestURLPrefix(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	for i, b := range backends {
		ctx := redistest.Deadline(t)
		q, err := delayq.Open(ctx, fmt.Sprintf("%s://%s/orders?db=%d&prefix=mine", b.scheme, server.Addr(), 4+i))
		must(t, err)
		defer func() { must(t, q.Close()) }()
		_, err = q.Push(ctx, nil, delayq.After(time.Hour))
		must(t, err)
		client := server.Client(t, func(o *redis.Options) { o.DB = 4 + i })
		keys, err := client.Keys(ctx, "*").Result()
		if err != nil || len(keys) == 0 {
			t.Fatalf("%s: keys %q, error %v", b.scheme, keys, err)
		}
		for _, key := range keys {
			if !strings.Contains(key, b.key) && (!redistest.IsRegistry(key) || !strings.Contains(key, "mine")) {
				t.Errorf("%s: key %q", b.scheme, key)
			}
		}
	}
}

// The parameter reaches the store, where a push says that no replica has the message.
func TestURLWaitsForReplicas(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	for _, scheme := range []string{"zsetpoll", "keyspace"} {
		q, err := delayq.Open(t.Context(), scheme+"://"+server.Addr()+"/"+scheme+"?wait_replicas=1,1ms")
		must(t, err)
		if _, err := q.Push(t.Context(), nil, delayq.After(time.Hour)); !errors.Is(err, delayq.ErrUnconfirmed) {
			t.Errorf("%s: without a replica a push returns %v", scheme, err)
		}
		must(t, q.Close())
	}
}

func TestCloseEndsTheConnectionsOfAURL(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.scheme, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t, testenv.AOF(), testenv.Private())
			client := server.Client(t)
			redistest.RoundTrip(t, b.scheme+"://"+server.Addr()+"/orders")
			await(t, "the last other connection to end", func() bool {
				return strings.Count(client.ClientList(t.Context()).Val(), "id=") == 1
			})
		})
	}
}

func TestOpenURLWithoutServer(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	server.Kill()
	for _, b := range backends {
		_, err := delayq.Open(t.Context(), b.scheme+"://:hunter2@"+server.Addr()+"/orders")
		if err == nil || !strings.Contains(err.Error(), "connecting to "+server.Addr()+": ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", b.scheme, err)
		}
	}
}

func TestOpenURLRejects(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]string{
		"zsetpoll://host/orders?claims=lua":        `claims "lua": allowed is one of arbitrate, mover, script`,
		"zsetpoll://host/orders?poll=1h":           `poll "1h": allowed is 10ms to 1m`,
		"zsetpoll://host/orders?poll=1":            `poll "1": allowed is a duration more than 0, as 500ms or 2s`,
		"zsetpoll://host/orders?sweep=1s":          `"sweep": allowed is one of addr, claims, cluster, `,
		"zsetpoll://host/orders?prefix={x}":        `prefix "{x}": allowed is 1 to 64 bytes without braces`,
		"zsetpoll://host/orders?prefix=":           `prefix "": allowed is 1 to 64 bytes without braces`,
		"zsetpoll://host/orders?prefix=a&prefix=b": `prefix "a and b": allowed is one value`,

		"zsetpoll://host/orders?wait_replicas=1":    `wait_replicas "1": allowed is how many replicas and for how long, as "1,500ms"`,
		"zsetpoll://host/orders?wait_replicas=x,1s": `wait_replicas "x,1s": allowed is how many replicas`,
		"zsetpoll://host/orders?wait_replicas=0,1s": `wait_replicas "0,1s": allowed is 1 to 100`,
		"zsetpoll://host/orders?wait_disk=0,2h":     `wait_disk "0,2h": allowed is 1ms to 1m`,
		"zsetpoll://host/orders?wait_disk=0":        `wait_disk "0": allowed is how many replicas`,
		"keyspace://host/orders?wait_replicas=0,1s": `wait_replicas "0,1s": allowed is 1 to 100`,
		"keyspace://host/orders?wait_disk=-1,1s":    `wait_disk "-1,1s": allowed is 1 to 100; for WaitDisk also 0`,
		"keyspace://host/orders?wait_disk=1":        `wait_disk "1": allowed is how many replicas`,

		"keyspace://host/orders?sweep=1h":      `sweep "1h": allowed is 10ms to 1m`,
		"keyspace://host/orders?sweep=1":       `sweep "1": allowed is a duration more than 0, as 500ms or 2s`,
		"keyspace://host/orders?poll=1s":       `"poll": allowed is one of addr, cluster, `,
		"keyspace://host/orders?claims=script": `"claims": allowed is one of addr, cluster, `,
		"keyspace://host/orders?prefix={x}":    `prefix "{x}": allowed is 1 to 64 bytes without braces`,

		"redisson://host/orders?codec=kryo":                        `codec "kryo": allowed is bytes, string, jackson, `,
		"redisson://host/orders?codec=":                            `codec "": allowed is bytes, string, `,
		"redisson://host/orders?format=V2":                         `format "V2": allowed is one of both, v1, v2`,
		"redisson://host/orders?any_format=1":                      `any_format "1": allowed is one of false, true`,
		"redisson://host/orders?index=no":                          `index "no": allowed is one of false, true`,
		"redisson://host/orders?prefix=%00":                        `prefix "\x00": allowed is up to 256 bytes without NUL`,
		"redisson://host/orders?sweep=1h":                          `sweep "1h": allowed is 10ms to 1m`,
		"redisson://host/orders?sweep=1":                           `sweep "1": allowed is a duration more than 0, as 500ms or 2s`,
		"redisson://host/orders?claims=script":                     `"claims": allowed is one of addr, any_format, cluster, codec, `,
		"redisson://host/orders?codec=bytes&codec=string":          `codec "bytes and string": allowed is one value`,
		"redisson://user:hunter2@host/orders?sweep=hunter2@host:1": `sweep "(hidden)@host:1": allowed is a duration`,
	} {
		rejects(t, rawURL, "invalid URL parameter "+want)
	}
	for _, b := range backends {
		rejects(t, b.scheme+"://host", `invalid URL path "": allowed is the queue's name, as in `+b.scheme+`://localhost:6379/orders`)
	}
	for _, scheme := range []string{"zsetpoll", "keyspace"} {
		rejects(t, scheme+"://host", "/orders; a database is db=N")
	}
}

func rejects(t *testing.T, rawURL, want string) {
	t.Helper()
	_, err := delayq.Open(t.Context(), rawURL)
	if !errors.Is(err, delayq.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\ngot  %v\nwant %s", rawURL, err, want)
	}
}
