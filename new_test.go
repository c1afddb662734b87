package delayq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/memory"
)

// TestContextOfNewBoundsTheOpeningAlone ends New's context and uses the queue.
func TestContextOfNewBoundsTheOpeningAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	must(t, err)
	defer func() { must(t, q.Close()) }()
	cancel()
	push(t, q)
	d, err := q.Receive(t.Context())
	must(t, err)
	must(t, d.Ack(t.Context()))
}

func TestNewWarnsOfForgottenBackend(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		option delayq.Option
		lines  int
	}{
		"no backend": {delayq.WithLease(time.Minute), 1},
		"in memory":  {delayq.InMemory(), 0},
		"a backend":  {delayq.WithBackend(memory.New()), 0},
	} {
		var log journal
		q, err := delayq.New(t.Context(), "orders", log.Logger(), tt.option)
		must(t, err)
		push(t, q)
		must(t, receive(t, q).Ack(t.Context()))
		must(t, q.Close())
		if got := strings.Count(log.String(), "live in this process only"); got != tt.lines || strings.Count(log.String(), "\n") != tt.lines {
			t.Errorf("%s: %d warnings, want %d, in: %s", name, got, tt.lines, log.String())
		}
	}
}

func TestInMemoryWithABackendIsRefused(t *testing.T) {
	t.Parallel()
	_, err := delayq.New(t.Context(), "orders", delayq.InMemory(), delayq.WithBackend(memory.New()))
	wantInvalid(t, err, "option", "InMemory")
}

// TestNamed opens URLs that have no name, the same name, or another one.
func TestNamed(t *testing.T) {
	for rawURL, found := range map[string]bool{
		"memory://named/orders":  true,
		"memory://named/":        true,
		"memory://named":         true,
		"memory://named/refunds": false,
	} {
		pushed, err := delayq.Open(t.Context(), "memory://named/orders")
		must(t, err)
		id := push(t, pushed)
		q, err := delayq.Open(t.Context(), rawURL, delayq.Named("orders"))
		if found {
			must(t, err)
			if d := receive(t, q); d.ID != id {
				t.Errorf("%s: received %s, want %s", rawURL, d.ID, id)
			}
			must(t, q.Close())
		} else {
			wantInvalid(t, err, "queue name", `"orders"`)
			if !strings.Contains(err.Error(), `"refunds"`) {
				t.Errorf("%v does not tell the other name", err)
			}
		}
		_, err = pushed.Purge(t.Context())
		must(t, err)
		must(t, pushed.Close())
	}
}

// The backend that Open made is closed when the names differ.
func TestNamedClosesItsBackend(t *testing.T) {
	t.Parallel()
	s := newSeam()
	opened.Store("two-names", s)
	defer opened.Delete("two-names")
	_, err := delayq.Open(t.Context(), "seam://two-names/a", delayq.Named("b"))
	wantInvalid(t, err, "queue name", `"b"`)
	if n, _ := s.calls("close backend"); n != 1 {
		t.Errorf("the backend was closed %d times, want once", n)
	}
}
