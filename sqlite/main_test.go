package sqlite_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/sqlite"
)

// TestMain runs a child process's part where the environment names one.
func TestMain(m *testing.M) {
	if part := os.Getenv("DELAYQ_SQLITE_CHILD"); part != "" {
		os.Exit(child(part, os.Getenv("DELAYQ_SQLITE_FILE")))
	}
	goleak.VerifyTestMain(m)
}

const patience = time.Minute

func newFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "delay.db")
}

// open opens a queue on a backend of its own, until the test ends.
func open(t testing.TB, path string, opts ...sqlite.Option) backend.Queue {
	t.Helper()
	b := sqlite.New(path, opts...)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	q, err := openOn(b)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return q
}

func openOn(b *sqlite.Backend) (backend.Queue, error) {
	return b.Open(context.Background(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
}

func push(q backend.Queue, id string, delay time.Duration) error {
	return errors.Join(q.Schedule(context.Background(), []backend.Message{{ID: id, Body: []byte("body of " + id), Delay: delay}})...)
}

func mustPush(t testing.TB, q backend.Queue, id string, delay time.Duration) {
	t.Helper()
	if err := push(q, id, delay); err != nil {
		t.Fatalf("pushing %s: %v", id, err)
	}
}

func mustReceive(t testing.TB, q backend.Queue, limit int) []backend.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ds, err := q.Receive(ctx, limit, time.Minute)
	if err != nil {
		t.Fatalf("receiving: %v", err)
	}
	return ds
}

func ack(t testing.TB, q backend.Queue, ds []backend.Delivery) {
	t.Helper()
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	if err := errors.Join(q.Ack(t.Context(), ls)...); err != nil {
		t.Fatalf("ack: %v", err)
	}
}
