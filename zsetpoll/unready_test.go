package zsetpoll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// wantUnavailable wants the error of a push to a server that was not ready until the context ended. On a busy machine
// the context may end before the server's first reply: then the push has more time.
func wantUnavailable(ctx context.Context, t *testing.T, q backend.Queue, reply string) {
	t.Helper()
	var err error
	for wait := 200 * time.Millisecond; wait < 8*time.Second; wait *= 2 { // after 10 s the push fails by itself
		short, cancel := context.WithTimeout(ctx, wait)
		err = errors.Join(q.Schedule(short, message("refused", time.Hour))...)
		cancel()
		if err == nil || strings.Contains(err.Error(), reply) {
			break
		}
	}
	if !errors.Is(err, backend.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), reply) {
		t.Errorf("the error is %v; want %s, ErrUnavailable and DeadlineExceeded", err, reply)
	}
}

// TestSlotMigrates moves the slot of a queue: a script has keys on both nodes, until the move is
// over.
func TestSlotMigrates(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	cluster := testenv.RedisCluster(t)
	client := cluster.Client(t)
	q := open(t, client)
	must(t, q.Schedule(ctx, message("first", time.Hour))...)
	keys, err := client.ClusterKeySlot(ctx, "{"+t.Name()+"}").Result()
	must(t, err)
	from, err := client.MasterForKey(ctx, "{"+t.Name()+"}")
	must(t, err)
	var to *redis.Client
	for _, node := range cluster.Nodes() {
		if node.Addr() != from.Options().Addr {
			to = node.Client(t)
			break
		}
	}
	move := func(state func(source, target string) (here, there []any)) {
		t.Helper()
		source, err := from.Do(ctx, "cluster", "myid").Text()
		must(t, err)
		target, err := to.Do(ctx, "cluster", "myid").Text()
		must(t, err)
		here, there := state(source, target)
		must(t, to.Do(ctx, append([]any{"cluster", "setslot", keys}, there...)...).Err(), from.Do(ctx, append([]any{"cluster", "setslot", keys}, here...)...).Err())
	}
	move(func(source, target string) (here, there []any) {
		return []any{"migrating", target}, []any{"importing", source}
	})
	wantUnavailable(ctx, t, q, "TRYAGAIN")
	over := time.AfterFunc(500*time.Millisecond, func() {
		_ = from.Do(ctx, "cluster", "setslot", keys, "stable").Err()
		_ = to.Do(ctx, "cluster", "setslot", keys, "stable").Err()
	})
	defer over.Stop()
	must(t, q.Schedule(ctx, message("third", time.Hour))...)
}

// TestServerLoading has a server take its time to read its data anew, as after a restart.
func TestServerLoading(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	server := testenv.Redis(t, testenv.Private(), testenv.Directive("enable-debug-command", "local"),
		testenv.Directive("loading-process-events-interval-bytes", "1024"))
	client := server.Client(t)
	q := open(t, client)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 2000 {
			p.Set(ctx, fmt.Sprint("key", i), strings.Repeat("x", 1024), 0)
		}
		return nil
	})
	must(t, err)
	must(t, client.ConfigSet(ctx, "key-load-delay", "20000").Err()) // in microseconds
	loaded := make(chan error, 1)
	loader := server.Client(t, func(o *redis.Options) { o.ReadTimeout = patience; o.MaxRetries = -1 })
	go func() { loaded <- loader.Do(ctx, "debug", "reload").Err() }()
	await(t, "the server to load", func() bool {
		return redis.HasErrorPrefix(client.Process(ctx, script.NewOnce(ctx, "get", "key0")), "LOADING")
	})
	wantUnavailable(ctx, t, q, "LOADING")
	must(t, client.ConfigSet(ctx, "key-load-delay", "0").Err())
	must(t, q.Schedule(ctx, message("second", time.Hour))...)
	must(t, <-loaded)
}

// TestReceiveReturnsErrClosedAfterClose closes a handle whose fetcher waits for the only
// connection.
func TestReceiveReturnsErrClosedAfterClose(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		client := testenv.SharedRedis(t).Client(t, func(o *redis.Options) { o.PoolSize = 1 })
		b := zsetpoll.New(client, zsetpoll.Claims(mode))
		defer func() { must(t, b.Close()) }()
		const queues = 40
		qs := make([]backend.Queue, queues)
		for i := range qs {
			qs[i] = redistest.Open(t, b, fmt.Sprint(t.Name(), i))
		}
		only := client.Conn()
		must(t, only.Ping(t.Context()).Err())
		var receiving, closing sync.WaitGroup
		for _, q := range qs {
			for range 8 {
				receiving.Go(func() {
					if ds, err := q.Receive(t.Context(), 1, longLease); !errors.Is(err, backend.ErrClosed) {
						t.Errorf("Receive returned %v, %v", ds, err)
					}
				})
			}
		}
		await(t, "the fetchers to wait for the connection", func() bool { return client.PoolStats().PendingRequests >= queues })
		for _, q := range qs {
			closing.Go(func() { must(t, q.Close()) })
		}
		receiving.Wait()
		must(t, only.Close())
		closing.Wait()
	})
}
