package schedule_test

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
	"github.com/delayq/delayq/backend"
)

// patience bounds, in real time, a wait for an event that must happen.
const patience = 30 * time.Second

var silent = slog.New(slog.DiscardHandler)

// newQueue returns a quiet queue on memory that is closed with the test.
func newQueue(t *testing.T, opts ...delayq.Option) delayq.Queue {
	t.Helper()
	q, err := delayq.New(t.Context(), "orders", append([]delayq.Option{delayq.WithLogger(silent)}, opts...)...)
	must(t, err)
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return q
}

// bubble runs a test in virtual time, beside other tests.
func bubble(t *testing.T, run func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, run)
}

func receive(t *testing.T, q delayq.Queue, within time.Duration) *delayq.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	d, err := q.Receive(ctx)
	must(t, err)
	return d
}

func stats(t *testing.T, q delayq.Queue) delayq.Stats {
	t.Helper()
	s, err := q.Stats(t.Context())
	must(t, err)
	return s
}

func wantEmpty(t *testing.T, q delayq.Queue) {
	t.Helper()
	if s := stats(t, q); s != (delayq.Stats{}) {
		t.Errorf("stats %+v, want none", s)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantIs checks that an error is the sentinel and names the operation.
func wantIs(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("error %v, want %v", err, sentinel)
	}
	var op *delayq.OpError
	if !errors.As(err, &op) || op.Op == "" {
		t.Errorf("error %v names no operation", err)
	}
}

func wantInvalid(t *testing.T, err error, what, value string) {
	t.Helper()
	wantIs(t, err, delayq.ErrInvalid)
	var invalid *delayq.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("error %v is no InvalidError", err)
	}
	if invalid.What != what || invalid.Allowed == "" || !strings.Contains(invalid.Value, value) || invalid.Value == "" {
		t.Errorf("got %+v, want %s with a value like %s and what is allowed", *invalid, what, value)
	}
}

// eventually waits for a condition that nothing announces.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// A journal keeps the log.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) logger() delayq.Option {
	return delayq.WithLogger(slog.New(slog.NewTextHandler(j, nil)))
}

func (j *journal) wantLogged(t *testing.T, parts ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, part := range parts {
		if !strings.Contains(j.buf.String(), part) {
			t.Errorf("the log lacks %q: %s", part, j.buf.String())
		}
	}
}

// lossy is a backend whose pushes fail while down reports true.
type lossy struct {
	backend.Backend
	down func() bool
}

func (l lossy) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := l.Backend.Open(ctx, name, o)
	return lossyQueue{q, l.down}, err
}

type lossyQueue struct {
	backend.Queue
	down func() bool
}

func (q lossyQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	if q.down() {
		return backend.FailAll(len(ms), errors.New("the store is away"))
	}
	return q.Queue.Schedule(ctx, ms)
}

// lacking is a backend without some features.
type lacking struct {
	backend.Backend
	features []backend.Feature
}

func (l lacking) Traits() backend.Traits {
	tr := l.Backend.Traits()
	tr.Lacks = tr.Lacks.With(l.features...)
	return tr
}
