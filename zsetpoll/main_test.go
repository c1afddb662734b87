package zsetpoll_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

func TestMain(m *testing.M) {
	runHelper()
	testenv.Main(m)
}

// patience bounds every wait for an event that must happen; it only matters when something is
// broken.
const patience = 30 * time.Second

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

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// open opens the test's queue, and closes it when the test ends.
func open(t *testing.T, client redis.UniversalClient, opts ...zsetpoll.Option) backend.Queue {
	t.Helper()
	b := zsetpoll.New(client, opts...)
	t.Cleanup(func() { wipe(t, client) })
	t.Cleanup(func() { must(t, b.Close()) })
	return openOn(t, b, t.Name())
}

// wipe makes the test's queue new for when the test runs again on a shared server.
func wipe(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys, err := client.Keys(ctx, "delayq:{"+t.Name()+"}:*").Result()
	must(t, err)
	if len(keys) > 0 {
		must(t, client.Del(ctx, keys...).Err())
	}
}

func openOn(t *testing.T, b *zsetpoll.Backend, name string) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), name, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return q
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// await asks until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
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

func leases(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}

// drained checks that the queue is empty and has left no key.
func drained(ctx context.Context, t *testing.T, q backend.Queue, client *redis.Client) {
	t.Helper()
	stats, err := q.Stats(ctx)
	must(t, err)
	if stats != (backend.Stats{}) {
		t.Errorf("the queue still has %+v", stats)
	}
	keys, err := client.Keys(ctx, "delayq:{"+t.Name()+"}:*").Result()
	must(t, err)
	if len(keys) > 0 {
		t.Errorf("left over: %v", keys)
	}
}
