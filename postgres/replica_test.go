package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestReplica opens a queue on a replica, which is refused. Then the primary is killed and the replica
// promoted: a handle whose URL names both goes on there, with all that was replicated.
func TestReplica(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	primary := testenv.Postgres(t)
	replica := primary.Replica(t)
	both := fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write", primary.Addr(), replica.Addr())
	q := opened(t, postgres.New(pool(t, both)))
	const messages = 300
	none(t, q.Schedule(ctx, pushes(messages, "m", 0)))

	reader := pool(t, replica.URL())
	await(t, "the replica to have all messages", func() bool {
		var n int
		return reader.QueryRow(ctx, "SELECT count(*) FROM delayq_messages").Scan(&n) == nil && n == messages
	})
	b := postgres.New(reader)
	t.Cleanup(func() { _ = b.Close() })
	_, err := b.Open(ctx, "q", quiet)
	says(t, err, "read-only", "target_session_attrs")
	if !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("%v does not match ErrUnavailable", err)
	}

	primary.Kill(t)
	replica.Promote(t)
	done := make(map[string]bool)
	for len(done) < messages {
		var ds []backend.Delivery
		persistent(ctx, t, func() (err error) {
			ds, err = q.Receive(ctx, 100, 5*time.Second)
			return err
		})
		leases := make([]backend.Lease, len(ds))
		for i, d := range ds {
			leases[i] = d.Lease()
		}
		for i, err := range append(q.Ack(ctx, leases), make([]error, len(ds))...)[:len(ds)] {
			if err == nil {
				done[ds[i].ID] = true
			}
		}
	}
	stats, err := q.Stats(ctx)
	must(t, err)
	if stats.Scheduled+stats.Ready+stats.InFlight != 0 {
		t.Errorf("left: %+v", stats)
	}
}
