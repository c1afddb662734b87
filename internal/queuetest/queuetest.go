// Package queuetest has what the tests of queues share: a queue on memory, its log, and checks of its
// errors.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/memory"
)

// Patience bounds, in real time, a wait for an event that must happen: long, since only a failing
// test ever waits that long.
const Patience = 30 * time.Second

// Silent is a logger for tests that look at no log.
var Silent = slog.New(slog.DiscardHandler)

// New returns a quiet queue on memory that is closed with the test.
func New(t *testing.T, opts ...delayq.Option) delayq.Queue {
	t.Helper()
	b := memory.New() // a test's own WithBackend comes after it
	q, err := delayq.New(t.Context(), "orders", append([]delayq.Option{delayq.WithLogger(Silent), delayq.WithBackend(b)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer func() { _ = b.Close() }()
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return q
}

// Bubble runs a test in virtual time, beside other tests.
func Bubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, run)
}

// Cases runs a test for each case, all of them in virtual time.
func Cases[C any](t *testing.T, all map[string]C, run func(*testing.T, C)) {
	t.Helper()
	t.Parallel()
	for name, c := range all {
		t.Run(name, func(t *testing.T) { Bubble(t, func(t *testing.T) { run(t, c) }) })
	}
}

// Receive returns the next message, which must come.
func Receive(t *testing.T, q delayq.Queue) *delayq.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	d, err := q.Receive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Stats returns the counts of the messages that the queue has.
func Stats(t *testing.T, q delayq.Queue) delayq.Stats {
	t.Helper()
	s, err := q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Activity = delayq.Activity{}
	return s
}

// Must ends the test where there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantIs checks that an error is the sentinel and names the operation.
func WantIs(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("error %v, want %v", err, sentinel)
	}
	var op *delayq.OpError
	if !errors.As(err, &op) || op.Op == "" {
		t.Errorf("error %v does not say what was being done", err)
	}
}

// WantInvalid checks that an error names the bad value and the allowed ones.
func WantInvalid(t *testing.T, err error, what, value string) {
	t.Helper()
	WantIs(t, err, delayq.ErrInvalid)
	var invalid *delayq.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("error %v is no InvalidError", err)
	}
	if invalid.What != what || invalid.Allowed == "" || !strings.Contains(invalid.Value, value) || invalid.Value == "" {
		t.Errorf("got %+v, want %s with a value like %s and what is allowed", *invalid, what, value)
	}
	for _, part := range []string{invalid.What, invalid.Value, invalid.Allowed} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("message %q lacks %q", err, part)
		}
	}
}

// Eventually waits for a condition that nothing announces.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// A Journal collects log lines.
type Journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

// String returns all lines.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// Logger is the option that has a queue log here.
func (j *Journal) Logger() delayq.Option {
	return delayq.WithLogger(slog.New(slog.NewTextHandler(j, nil)))
}

// Want checks that the log has the parts.
func (j *Journal) Want(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(j.String(), part) {
			t.Errorf("the log lacks %q: %s", part, j.String())
		}
	}
}
