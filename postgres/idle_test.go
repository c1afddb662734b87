package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestIdleQueues counts the transactions of workers that wait at empty queues: a second each, and a
// hundred a second for all that a process has. One connection listens for all of them.
func TestIdleQueues(t *testing.T) {
	testenv.In(t, testenv.All)
	server := testenv.Postgres(t, "track_functions=all")
	p := pool(t, server.URL(), func(c *pgxpool.Config) { c.MaxConns = 4 })
	watch := pool(t, server.URL(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	b := postgres.New(p)
	defer func() { _ = b.Close() }()
	wait := func(from, to int) {
		for i := from; i < to; i++ {
			q, err := b.Open(t.Context(), fmt.Sprint("idle", i), quiet)
			must(t, err)
			waiting.Go(func() { _, _ = q.Receive(ctx, 1, time.Minute) })
		}
	}
	number := func(query string) (n int64) {
		must(t, watch.QueryRow(t.Context(), query).Scan(&n))
		return n
	}
	const claims = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_user_functions WHERE funcname = 'delayq_claim'"
	// perSecond is the rate over ten seconds, at least: a busy machine only lowers it.
	perSecond := func() float64 {
		began, before := time.Now(), number(claims)
		time.Sleep(10 * time.Second) // the test counts claims in a time
		return float64(number(claims)-before) / time.Since(began).Seconds()
	}

	wait(0, 1)
	await(t, "the first claim", func() bool { return number(claims) > 0 })
	if rate := perSecond(); rate > 1.3 {
		t.Errorf("an idle queue sends %.1f claims a second, want 1", rate)
	}
	wait(1, 1000)
	await(t, "a claim of each queue", func() bool { return number(claims) >= 1000 })
	rate, listeners := perSecond(), number("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
	t.Logf("1,000 idle queues: %.0f claims a second, %d connection listens", rate, listeners)
	if rate > 120 || listeners != 1 {
		t.Errorf("1,000 idle queues send %.0f claims a second, want 100; %d connections listen, want 1", rate, listeners)
	}
}
