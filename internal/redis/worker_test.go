package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// TestWorkerKilled kills a process that holds messages: they come back when the leases end, not
// before.
func TestWorkerKilled(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		testenv.In(t, s.tier)
		const n, lease = 20, 6 * time.Second // longer than a busy machine delays the worker
		ctx := redistest.Deadline(t)
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		q := openQueue(t, s.open(client))
		until := redistest.KillWorker(t, server, s.name, "orders", lease, func() {
			ms := make([]backend.Message, n)
			for i := range ms {
				ms[i] = backend.Message{ID: fmt.Sprint(i), Body: fmt.Append(nil, i)}
			}
			must(t, q.Schedule(ctx, ms)...)
		}, n)
		for got := 0; got < n; {
			ds, err := q.Receive(ctx, n, time.Minute)
			must(t, err)
			for _, d := range ds {
				end, claimed := until[string(d.Body)], d.Until.Add(-time.Minute)
				if d.Attempt != 2 || end.IsZero() || claimed.Before(end) || claimed.After(end.Add(30*time.Second)) {
					t.Errorf("%s came back at %v as attempt %d; the lease ended at %v", d.Body, claimed, d.Attempt, end)
				}
			}
			must(t, q.Ack(ctx, leases(ds))...)
			got += len(ds)
		}
		empty(t, client)
	})
}

// patient receives although the server may be away for a moment.
func patient(ctx context.Context, t *testing.T, q backend.Queue, lease time.Duration, body string) backend.Delivery {
	t.Helper()
	for {
		ds, err := q.Receive(ctx, 1, lease)
		switch {
		case err == nil && len(ds) == 1 && string(ds[0].Body) == body:
			return ds[0]
		case err == nil || ctx.Err() != nil:
			t.Fatalf("got %+v, %v; want %q", ds, err, body)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestServerRestarts kills a server that keeps a log. Messages, leases and tokens are there
// afterwards.
func TestServerRestarts(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		testenv.In(t, s.tier)
		ctx := redistest.Deadline(t)
		server := testenv.Redis(t, testenv.AOF(), testenv.Directive("appendfsync", "always"))
		client := server.Client(t)
		q := openQueue(t, s.open(client))
		must(t, q.Schedule(ctx, []backend.Message{{ID: "a", Body: []byte("held")}, {ID: "b", Body: []byte("lapses")}})...)
		held := patient(ctx, t, q, time.Minute, "held")
		lapses := patient(ctx, t, q, 300*time.Millisecond, "lapses")
		must(t, q.Schedule(ctx, []backend.Message{{ID: "c", Body: []byte("later"), Delay: 500 * time.Millisecond}})...)
		server.Kill()
		server.Restart()
		again := patient(ctx, t, q, time.Minute, "lapses")
		if again.Attempt != lapses.Attempt+1 || again.Until.Add(-time.Minute).Before(lapses.Until) {
			t.Errorf("got %+v; its lease before ended at %v", again, lapses.Until)
		}
		later := patient(ctx, t, q, time.Minute, "later")
		must(t, q.Ack(ctx, leases([]backend.Delivery{held, again, later}))...)
		empty(t, client)
	})
}
