package zsetpoll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
	_ "github.com/delayq/delayq/zsetpoll"
)

// roundTrip pushes and takes a message through a URL, and closes.
func roundTrip(t *testing.T, rawURL string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	q, err := delayq.Open(ctx, rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := q.Push(ctx, []byte("hello"), delayq.After(20*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Body) != "hello" {
		t.Errorf("got %q", d.Body)
	}
	if err := d.Ack(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestOpenURL(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	base := "zsetpoll://" + server.Addr() + "/orders"
	for _, query := range []string{"", "?claims=script", "?claims=arbitrate", "?claims=mover&poll=50ms", "?db=2&pool_size=4"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			roundTrip(t, base+query)
		})
	}
}

func TestOpenURLOfACluster(t *testing.T) {
	t.Parallel()
	addrs := testenv.RedisCluster(t, testenv.AOF()).Addrs()
	roundTrip(t, fmt.Sprintf("zsetpoll://%s/orders?cluster=true&addr=%s", addrs[1], addrs[2]))
}

func TestURLPrefix(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	ctx := t.Context()
	q, err := delayq.Open(ctx, "zsetpoll://"+server.Addr()+"/orders?db=4&prefix=mine")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	if _, err := q.Push(ctx, nil, delayq.After(time.Hour)); err != nil {
		t.Fatal(err)
	}
	client := server.Client(t, func(o *redis.Options) { o.DB = 4 })
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %q, error %v", keys, err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "mine:{orders}:") {
			t.Errorf("key %q", key)
		}
	}
}

func TestCloseEndsTheConnectionsOfAURL(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	client := server.Client(t)
	roundTrip(t, "zsetpoll://"+server.Addr()+"/orders")
	var list string
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		if list = client.ClientList(t.Context()).Val(); strings.Count(list, "id=") == 1 {
			return
		}
	}
	t.Errorf("still connected:\n%s", list)
}

func TestOpenURLRejects(t *testing.T) {
	t.Parallel()
	for rawURL, want := range map[string]string{
		"host/orders?claims=lua":        `invalid URL parameter claims "lua": allowed is one of arbitrate, mover, script`,
		"host/orders?poll=1h":           `invalid URL parameter poll "1h": allowed is 10ms to 1m`,
		"host/orders?poll=1":            `invalid URL parameter poll "1": allowed is a duration more than 0, as 500ms or 2s`,
		"host/orders?sweep=1s":          `invalid URL parameter "sweep": allowed is one of addr, claims, cluster, `,
		"host/orders?prefix={x}":        `invalid URL parameter prefix "{x}": allowed is 1 to 64 bytes without braces`,
		"host/orders?prefix=":           `invalid URL parameter prefix "": allowed is 1 to 64 bytes without braces`,
		"host/orders?prefix=a&prefix=b": `invalid URL parameter prefix "a and b": allowed is one value`,
		"host":                          `invalid URL path "": allowed is the queue's name, as in zsetpoll://localhost:6379/orders; a database is db=N`,
	} {
		_, err := delayq.Open(t.Context(), "zsetpoll://"+rawURL)
		if !errors.Is(err, delayq.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", rawURL, err, want)
		}
	}
}

func TestOpenURLWithoutServer(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	server.Kill()
	_, err := delayq.Open(t.Context(), "zsetpoll://:hunter2@"+server.Addr()+"/orders")
	if err == nil || !strings.Contains(err.Error(), "connecting to "+server.Addr()+": ") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
