package redis_test

import (
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
		const n, lease = 20, 2 * time.Second
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
				if d.Attempt != 2 || end.IsZero() || claimed.Before(end) || claimed.After(end.Add(5*time.Second)) {
					t.Errorf("%s came back at %v as attempt %d; the lease ended at %v", d.Body, claimed, d.Attempt, end)
				}
			}
			must(t, q.Ack(ctx, leases(ds))...)
			got += len(ds)
		}
		empty(t, client)
	})
}
