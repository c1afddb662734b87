package keyspace_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/keyspace"
)

// cutSubscriptions ends all subscriptions again and again until it is stopped.
func cutSubscriptions(t *testing.T, client redis.UniversalClient) (stop func()) {
	t.Helper()
	done, ended := make(chan struct{}), make(chan struct{})
	ctx := t.Context()
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				_ = client.ClientKillByFilter(ctx, "TYPE", "pubsub").Err()
			}
		}
	}()
	return func() { close(done); <-ended }
}

// With a sweep of a minute, messages whose expiries were missed are found because a new
// subscription makes all queues look.
func TestSubscribingAgainLooks(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	q := open(t, newBackend(t, client, keyspace.Sweep(time.Minute)))
	for i := range 3 {
		s := sleep(t, client, q)
		stop := cutSubscriptions(t, client)
		id := numbered("m", i)
		push(t, q, id, 200*time.Millisecond)
		await(t, "the trigger to go", func() bool { return client.Exists(t.Context(), trigger).Val() == 0 })
		stop()
		s.woken(t, id, time.Second+noise)
	}
}

func TestDroppedEventsLoseNothing(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	q := open(t, newBackend(t, client, keyspace.Sweep(200*time.Millisecond)))
	stop := cutSubscriptions(t, client)
	defer stop()
	const n = 500
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = backend.Message{ID: numbered("m", i), Delay: time.Duration(i) * 4 * time.Millisecond}
	}
	must(t, q.Schedule(t.Context(), ms)...)
	seen := make(map[string]bool)
	for len(seen) < n {
		d := take(t, q, redistest.Patience)
		if seen[d.ID] {
			t.Fatalf("message %s came twice", d.ID)
		}
		seen[d.ID] = true
		must(t, q.Ack(t.Context(), []backend.Lease{d.Lease()})...)
	}
}
