package zsetpoll_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var (
	must   = redistest.Must
	await  = redistest.Await
	leases = redistest.Leases
)

const patience = redistest.Patience

// longLease is a lease that does not end while a test runs.
const longLease = time.Hour

var modes = map[string]zsetpoll.Mode{"script": zsetpoll.Script, "arbitrate": zsetpoll.Arbitrate, "mover": zsetpoll.Mover}

func eachMode(t *testing.T, f func(*testing.T, zsetpoll.Mode)) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if mode != zsetpoll.Script {
				testenv.In(t, testenv.All)
			}
			f(t, mode)
		})
	}
}

// open opens the test's queue, and closes it when the test ends.
func open(t *testing.T, client redis.UniversalClient, opts ...zsetpoll.Option) backend.Queue {
	t.Helper()
	b := zsetpoll.New(client, opts...)
	t.Cleanup(func() { redistest.Wipe(t, client, "delayq:{"+t.Name()+"}:*") })
	t.Cleanup(func() { must(t, b.Close()) })
	return redistest.Open(t, b, t.Name())
}

func message(id string, delay time.Duration) []backend.Message {
	return []backend.Message{{ID: id, Body: []byte("body of " + id), Delay: delay}}
}

// receiveOne waits for one message, which must be that.
func receiveOne(ctx context.Context, t *testing.T, q backend.Queue, lease time.Duration, id string) backend.Delivery {
	t.Helper()
	ds, err := q.Receive(ctx, 1, lease)
	must(t, err)
	if len(ds) != 1 || ds[0].ID != id || string(ds[0].Body) != "body of "+id {
		t.Fatalf("got %+v, want %q", ds, id)
	}
	return ds[0]
}

// drained checks that the queue is empty and has left no key.
func drained(ctx context.Context, t *testing.T, q backend.Queue, client *redis.Client) {
	t.Helper()
	stats, err := q.Stats(ctx)
	must(t, err)
	if stats != (backend.Stats{Activity: stats.Activity}) {
		t.Errorf("the queue still has %+v", stats)
	}
	keys, err := client.Keys(ctx, "delayq:{"+t.Name()+"}:*").Result()
	must(t, err)
	keys = slices.DeleteFunc(keys, redistest.Stays)
	if len(keys) > 0 {
		t.Errorf("left over: %v", keys)
	}
}
