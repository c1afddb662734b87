package postgres

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/testenv"
)

// TestExplain has errors of the server and of a pooler explained: which say that the store is away, and
// which that the statement may have been carried out.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what                 string
		err                  error
		unavailable, unknown bool
	}{
		{"a pooler lost the server", &pgconn.PgError{Code: "08P01", Message: "server conn crashed?"}, true, true},
		{"the resolution is unknown", &pgconn.PgError{Code: "08007"}, true, true},
		{"the same before anything was sent", unsent{&pgconn.PgError{Code: "08P01"}}, true, false},
		{"a deadlock", &pgconn.PgError{Code: deadlock}, true, false},
		{"the server stops", &pgconn.PgError{Code: "57P01"}, true, false},
		{"no rights", &pgconn.PgError{Code: noPermission}, false, false},
		{"a broken connection", errors.New("unexpected EOF"), true, true},
		{"no connection", unsent{errors.New("connection refused")}, true, false},
	} {
		err := explain(&config{}, c.err)
		if got := errors.Is(err, backend.ErrUnavailable); got != c.unavailable {
			t.Errorf("%s: matches ErrUnavailable: %v, want %v: %v", c.what, got, c.unavailable, err)
		}
		if got := errors.Is(err, backend.ErrOutcomeUnknown); got != c.unknown {
			t.Errorf("%s: matches ErrOutcomeUnknown: %v, want %v: %v", c.what, got, c.unknown, err)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v does not match the cause", c.what, err)
		}
	}
}

// TestPoolerLosesServer kills the server under a PgBouncer while a claim waits for a lock. The pooler
// tells that by an error of its own. The claim may have been carried out for all that it says, so the
// next one asks for the same messages.
func TestPoolerLosesServer(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server := testenv.Postgres(t)
	near, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(near.Close)
	far, err := pgxpool.New(t.Context(), testenv.PgBouncer(t, server, "transaction").URL()+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Close)
	b := New(far)
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m := q.(*handle.Queue).Messages.(*messages)
	tx, err := near.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE delayq_queues IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error, 1)
	go func() {
		_, err := m.claim(context.Background(), 1, time.Minute)
		claimed <- err
	}()
	waits := func() (n int) {
		t.Helper()
		if err := near.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%delayq_claim%' AND wait_event_type = 'Lock'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for end := time.Now().Add(time.Minute); waits() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited a minute for a claim that waits for the lock")
		}
	}
	server.Kill(t)
	_ = tx.Rollback(t.Context()) // the pool takes its connection back
	err = <-claimed
	t.Logf("the claim returned: %v", err)
	if !errors.Is(err, backend.ErrUnavailable) || !errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("%v does not match ErrUnavailable and ErrOutcomeUnknown", err)
	}
	if m.scan.token == 0 {
		t.Error("the next claim does not ask for the messages of this one")
	}
}
