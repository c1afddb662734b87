package conformance_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/testenv"
)

// TestRemove removes one queue of two from each store that can.
func TestRemove(t *testing.T) {
	testenv.In(t, testenv.All)
	can := 0
	for name, h := range backends(t) {
		b, cleanup, err := h.New(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if cleanup != nil {
				cleanup()
			}
		}
		r, ok := b.(admin.Remover)
		if !ok {
			end()
			// Behind a server, queues are removed where the store is.
			if !strings.HasPrefix(name, "coarse") && !strings.HasPrefix(name, "numbered") && !strings.HasPrefix(name, "httpclient") {
				t.Errorf("%s is no admin.Remover", name)
			}
			continue
		}
		can++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer end()
			removesOne(t, b, r)
		})
	}
	if can < 5 {
		t.Errorf("only %d backends can remove queues", can)
	}
}

func removesOne(t *testing.T, b backend.Backend, r admin.Remover) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	base := fmt.Sprintf("remove-%d", time.Now().UnixNano())
	one, longer := base, base+".x" // of two names, one begins with the other
	if left := remains(ctx, t, r, one, longer); len(left) > 0 {
		t.Errorf("before: %q", left)
	}
	for _, name := range []string{one, longer} {
		fill(ctx, t, b, name)
	}
	eventually(ctx, t, "messages in both", func() bool {
		return len(remains(ctx, t, r, one)) > 0 && len(remains(ctx, t, r, longer)) > 0
	})
	for range 2 {
		if err := r.Remove(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	if left := remains(ctx, t, r, one); len(left) > 0 {
		t.Errorf("left of what was removed: %q", left)
	}
	if left := remains(ctx, t, r, one, longer); len(left) == 0 {
		t.Error("the other queue has gone too")
	}
	if err := r.Remove(ctx, longer); err != nil {
		t.Fatal(err)
	}
	if left := remains(ctx, t, r, one, longer); len(left) > 0 {
		t.Errorf("left of both: %q", left)
	}
}

func remains(ctx context.Context, t *testing.T, r admin.Remover, queues ...string) []string {
	t.Helper()
	left, err := r.Remains(ctx, queues...)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// fill pushes a message that is due, one in flight, and a dead letter.
func fill(ctx context.Context, t *testing.T, b backend.Backend, name string) {
	t.Helper()
	q, err := b.Open(ctx, name, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	for i := range 3 {
		if errs := q.Schedule(ctx, []backend.Message{{ID: fmt.Sprint("m", i), Body: []byte("body")}}); errs != nil && errs[0] != nil {
			t.Fatal(errs)
		}
	}
	for range 2 {
		ds, err := q.Receive(ctx, 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if ds[0].ID == "m1" {
			if errs := q.Dead(ctx, []backend.DeadLetterRequest{{Lease: ds[0].Lease(), Reason: "of the test"}}); errs != nil && errs[0] != nil {
				t.Fatal(errs)
			}
		}
	}
}

func eventually(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
