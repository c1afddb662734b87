package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/postgres"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func none(t *testing.T, errs []error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("outcome %d: %v", i, err)
		}
	}
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

var quiet = backend.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}

func pool(t *testing.T, url string, tune ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	must(t, err)
	for _, set := range tune {
		set(cfg)
	}
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

var prefixes atomic.Int64

// fresh is a prefix of no other test's tables.
func fresh() postgres.Option { return postgres.Prefix(freshName()) }

func freshName() string { return fmt.Sprintf("t%d_", prefixes.Add(1)) }

// opened opens the queue q.
func opened(t *testing.T, b *postgres.Backend) backend.Queue {
	t.Helper()
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", quiet)
	must(t, err)
	return q
}

func pushes(n int, name string, delay time.Duration) []backend.Message {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = backend.Message{ID: fmt.Sprintf("%s-%06d", name, i), Body: []byte("body"), Delay: delay}
	}
	return ms
}

// persistent repeats a call that a broken connection may fail.
func persistent(ctx context.Context, t *testing.T, call func() error) {
	t.Helper()
	for err := call(); err != nil; err = call() {
		if ctx.Err() != nil {
			t.Fatalf("still failing: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
