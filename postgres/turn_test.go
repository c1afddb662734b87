package postgres_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestLeaseBeginsWithItsRows holds a claim up before it takes its messages. Others may have them
// meanwhile, so its leases must not count from before.
func TestLeaseBeginsWithItsRows(t *testing.T) {
	t.Parallel()
	name := freshName()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	none(t, q.Schedule(t.Context(), pushes(2, "m", 0)))
	tx, err := p.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+name+"queues IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	type outcome struct {
		ds  []backend.Delivery
		err error
	}
	received := make(chan outcome, 1)
	go func() {
		ds, err := q.Receive(t.Context(), 2, time.Minute)
		received <- outcome{ds, err}
	}()
	await(t, "a claim that waits for the lock", func() bool {
		var n int
		must(t, p.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND wait_event_type = 'Lock'", "%"+name+"claim%").Scan(&n))
		return n > 0
	})
	var free time.Time
	must(t, tx.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&free))
	must(t, tx.Rollback(t.Context()))
	o := <-received
	must(t, o.err)
	if len(o.ds) != 2 {
		t.Fatalf("received %+v", o.ds)
	}
	for _, d := range o.ds {
		if began := d.Until.Add(-time.Minute); began.Before(free) {
			t.Errorf("the lease of %s counts from %v before its claim could have it", d.ID, free.Sub(began))
		}
	}
}

// TestLateCommitKeepsItsTurn commits a push when a worker has looked beyond its due time, and tells
// the worker nothing. The message comes before one that is due later.
func TestLateCommitKeepsItsTurn(t *testing.T) {
	t.Parallel()
	name := freshName()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	receive := func() backend.Delivery {
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		must(t, err)
		none(t, q.Ack(t.Context(), []backend.Lease{ds[0].Lease()}))
		return ds[0]
	}
	const inTime = 400 * time.Millisecond // less than the room that scans leave
	for try := range 50 {
		none(t, q.Schedule(t.Context(), pushes(1, "before", 0)))
		receive() // a scan from the beginning, for another second
		tx, err := p.Begin(t.Context())
		must(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		began := time.Now()
		_, err = tx.Exec(t.Context(), "SELECT "+name+"push('q', NULL, '{late}', '{-1}', '{0}', '{0}', ARRAY[''::bytea], ARRAY['body'::bytea])")
		must(t, err)
		none(t, q.Schedule(t.Context(), pushes(1, "between", 0)))
		receive()
		none(t, q.Schedule(t.Context(), pushes(1, "after", 0)))
		must(t, tx.Commit(t.Context()))
		first := receive()
		took := time.Since(began)
		receive()
		if first.ID == "late" {
			return
		}
		if took < inTime {
			t.Fatalf("try %d: %s came before the message that was committed late", try, first.ID)
		}
	}
	t.Fatal("the machine is too slow: each try took longer than the room that scans leave")
}
