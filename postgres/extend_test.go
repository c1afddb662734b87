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

// leased pushes n messages and leases them for a minute.
func leased(t *testing.T, q backend.Queue, n int) (ds []backend.Delivery, ls []backend.Lease) {
	t.Helper()
	none(t, q.Schedule(t.Context(), pushes(n, "m", 0)))
	for len(ds) < n {
		some, err := q.Receive(t.Context(), n-len(ds), time.Minute)
		must(t, err)
		ds = append(ds, some...)
	}
	for _, d := range ds {
		ls = append(ls, d.Lease())
	}
	return ds, ls
}

// An open transaction that has locked one message does not keep others from being extended.
func TestExtendPassesByALockedMessage(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	ds, ls := leased(t, q, 3)
	tx := beginPgx(t, p, pgx.TxOptions{})
	if errs := inTx(t, q, tx.any).Cancel(t.Context(), []string{ls[0].ID}); !errors.Is(errors.Join(errs...), backend.ErrInFlight) {
		t.Fatalf("cancelling a message in flight: %v", errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ends, errs := q.Extend(ctx, ls, time.Hour)
	if len(errs) != 3 || !errors.Is(errs[0], backend.ErrUnavailable) || errors.Is(errs[0], backend.ErrOutcomeUnknown) || errs[1] != nil || errs[2] != nil {
		t.Fatalf("outcomes %v, want ErrUnavailable for the first alone", errs)
	}
	for i := range 2 {
		if ends[i+1].Sub(ds[i+1].Until) < 50*time.Minute {
			t.Errorf("message %d was leased until %v, and is until %v after an extension by an hour", i+1, ds[i+1].Until, ends[i+1])
		}
	}
	must(t, tx.rollback())
	_, errs = q.Extend(ctx, ls, time.Hour)
	none(t, errs)
}

// A lock that goes soon is no error: the message is extended then. On a slow machine it may take longer.
func TestExtendTriesALockedMessageAgain(t *testing.T) {
	t.Parallel()
	p, name := pool(t, testenv.SharedPostgres(t).URL()), freshName()
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	_, ls := leased(t, q, 2)
	end := func() (at int64) {
		must(t, p.QueryRow(t.Context(), "SELECT at FROM "+name+"messages WHERE id = $1", ls[1].ID).Scan(&at))
		return at
	}
	var errs []error
	for range 20 {
		tx := beginPgx(t, p, pgx.TxOptions{})
		none(t, inTx(t, q, tx.any).Ack(t.Context(), ls[:1]))
		before, done := end(), make(chan []error, 1)
		go func() {
			_, errs := q.Extend(t.Context(), ls, time.Hour)
			done <- errs
		}()
		await(t, "the extension of the message that is not locked", func() bool { return end() != before })
		must(t, tx.rollback())
		if errs = <-done; errs == nil {
			return
		}
	}
	t.Errorf("outcomes %v after the lock was gone", errs)
}

// A message that a transaction has settled is lost once that has committed.
func TestExtendAfterAnAckInATransaction(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, fresh()))
	_, ls := leased(t, q, 2)
	tx := beginPgx(t, p, pgx.TxOptions{})
	none(t, inTx(t, q, tx.any).Ack(t.Context(), ls[:1]))
	for _, want := range []error{backend.ErrUnavailable, backend.ErrLeaseLost} {
		if _, errs := q.Extend(t.Context(), ls, time.Hour); len(errs) != 2 || !errors.Is(errs[0], want) || errs[1] != nil {
			t.Errorf("outcomes %v, want %v for the first alone", errs, want)
		}
		_ = tx.commit()
	}
}
