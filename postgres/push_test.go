package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestPushForgetsItsFirstTry pushes a message whose id is free once a window has ended, and one that
// is in flight. While the push waits for a lock in its second try, the one in flight is acked. Both are
// stored then, and neither is a duplicate.
func TestPushForgetsItsFirstTry(t *testing.T) {
	t.Parallel()
	name := freshName()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	ctx := t.Context()
	none(t, q.Schedule(ctx, []backend.Message{{ID: "z"}}))
	held, err := q.Receive(ctx, 1, time.Hour)
	must(t, err)
	var tx pgx.Tx
	await(t, "the lock of an id whose window has ended", func() bool { // what deletes such ids may be faster
		none(t, q.Schedule(ctx, []backend.Message{{ID: "b", Delay: time.Hour, UniqueFor: time.Hour}}))
		none(t, q.Cancel(ctx, []string{"b"}))
		exec(t, p, "UPDATE "+name+"messages SET at = 1, unique_until = 1 WHERE id = 'b' AND state = 3") // it has ended
		tx, err = p.Begin(ctx)
		must(t, err)
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		found, err := tx.Exec(ctx, "SELECT FROM "+name+"messages WHERE id = 'b' FOR UPDATE")
		must(t, err)
		return found.RowsAffected() == 1
	})
	pushed := make(chan []error, 1)
	go func() {
		pushed <- q.Schedule(ctx, []backend.Message{{ID: "b", Delay: time.Hour}, {ID: "z", Delay: time.Hour}})
	}()
	await(t, "a push that waits for the lock", func() bool {
		var n int
		must(t, p.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND wait_event_type = 'Lock'", "%"+name+"push%").Scan(&n))
		return n > 0
	})
	none(t, q.Ack(ctx, []backend.Lease{held[0].Lease()}))
	must(t, tx.Commit(ctx))

	none(t, <-pushed)
	infos, errs := q.Get(ctx, []string{"b", "z"})
	none(t, errs)
	for _, info := range infos {
		if info.State != backend.StateScheduled {
			t.Errorf("%s is %v, want %v", info.ID, info.State, backend.StateScheduled)
		}
	}
	again := q.Schedule(ctx, []backend.Message{{ID: "z"}})
	if again == nil || !errors.Is(again[0], backend.ErrDuplicate) {
		t.Errorf("a push of the same id returns %v, want ErrDuplicate", again)
	}
	_, err = q.Purge(ctx)
	must(t, err)
}

// TestEndedWindowsAreDeleted leaves ids of ended windows faster than claims delete them: a push
// deletes them with its activity, where nobody claims.
func TestEndedWindowsAreDeleted(t *testing.T) {
	t.Parallel()
	name := freshName()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	none(t, q.Schedule(t.Context(), pushes(1, "there", time.Hour)))
	exec(t, p, "INSERT INTO "+name+"messages (queue, id, state, at, seq, due, unique_until, body) SELECT 'q', 'ended-' || i, 3, 1, i, 1, 1, '' FROM generate_series(1, 5000) i")
	exec(t, p, "INSERT INTO "+name+"messages (queue, id, state, at, seq, due, unique_until, body) SELECT 'q', 'open', 3, 1::bigint << 60, 0, 1, 1::bigint << 60, ''")
	none(t, q.Schedule(t.Context(), pushes(2500, "new", time.Hour)))
	await(t, "the ended ids to be deleted", func() (gone bool) {
		must(t, p.QueryRow(t.Context(), "SELECT array_agg(id) = '{open}' FROM "+name+"messages WHERE state = 3").Scan(&gone))
		return gone
	})
}
