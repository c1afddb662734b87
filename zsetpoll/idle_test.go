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
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// idle has a worker wait at each queue, waits until the commands of opening are over, and returns
// the commands that the server gets in a while.
func idle(ctx context.Context, t *testing.T, server *testenv.RedisServer, client *redis.Client, d time.Duration, qs ...backend.Queue) []string {
	t.Helper()
	waiting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, q := range qs {
		wg.Go(func() {
			if ds, err := q.Receive(waiting, 1, time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("an idle queue gave %+v, %v", ds, err)
			}
		})
	}
	await(t, "all queues to subscribe", func() bool {
		channels, err := client.PubSubChannels(ctx, "delayq:*").Result()
		return err == nil && len(channels) == len(qs)
	})
	sleep(ctx, time.Second) // a subscription makes a queue look once more
	sent := listen(t, server.Addr())
	sleep(ctx, d)
	must(t, client.Echo(ctx, theEnd).Err())
	lines := sent()
	stop()
	wg.Wait()
	return lines[:len(lines)-1]
}

// looks counts a queue's looks among the commands: a script, or, to arbitrate, one pipeline that
// begins with TIME. No other commands are allowed, except those that keep connections alive.
func looks(t *testing.T, lines []string) int {
	t.Helper()
	n := 0
	for _, line := range lines {
		_, sent, _ := strings.Cut(line, "] ")
		switch name, _, _ := strings.Cut(sent, " "); strings.ToLower(name) {
		case `"evalsha"`, `"time"`:
			n++
		case `"zrange"`, `"llen"`: // with the TIME before
		case `"ping"`, `"hello"`, `"client"`:
		default:
			t.Errorf("an idle queue sends %s", line)
		}
	}
	return n
}

// TestIdleQueue counts the commands of an idle queue with a waiting worker.
func TestIdleQueue(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		const d = 4 * time.Second
		ctx := deadline(t, 60*time.Second)
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		q := open(t, client, zsetpoll.Claims(mode))
		must(t, q.Schedule(ctx, message("far", time.Hour))...)
		lines := idle(ctx, t, server, client, d, q)
		n := looks(t, lines)
		t.Logf("an idle queue looked %d times in %v, with %d commands", n, d, len(lines))
		if n == 0 || n > int(d/time.Second)+1 {
			t.Errorf("an idle queue looked %d times in %v", n, d)
		}
	})
}

// TestIdleQueues counts the commands of very many idle queues of one backend together: a hundred
// looks a second.
func TestIdleQueues(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		queues := 250
		if mode == zsetpoll.Script && testenv.Runs(t, testenv.All) {
			queues = 1000
		}
		d := time.Duration(queues)*time.Second/100 + time.Second
		ctx := deadline(t, 100*time.Second)
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		b := zsetpoll.New(client, zsetpoll.Claims(mode))
		defer func() { must(t, b.Close()) }()
		qs := make([]backend.Queue, queues)
		for i := range qs {
			qs[i] = openOn(t, b, fmt.Sprint("queue ", i))
		}
		lines := idle(ctx, t, server, client, d, qs...)
		n := looks(t, lines)
		t.Logf("%d idle queues looked %d times in %v, with %d commands", queues, n, d, len(lines))
		if n == 0 || n > queues*3/2 { // some look twice in one interval and a second
			t.Errorf("%d idle queues looked %d times in %v", queues, n, d)
		}
	})
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func TestOneSubscription(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, 60*time.Second)
	client := testenv.Redis(t, testenv.Private()).Client(t)
	b := zsetpoll.New(client)
	defer func() { must(t, b.Close()) }()
	for i := range 50 {
		q := openOn(t, b, fmt.Sprint("queue ", i))
		must(t, q.Schedule(ctx, message("a", 0))...)
		must(t, q.Ack(ctx, leases([]backend.Delivery{receiveOne(ctx, t, q, time.Minute, "a")}))...)
	}
	list, err := client.Do(ctx, "client", "list", "type", "pubsub").Text()
	must(t, err)
	if n := strings.Count(list, "\n"); n != 1 {
		t.Errorf("%d connections subscribe:\n%s", n, list)
	}
}
