package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/memory"
)

// TestHandlerPushesItsOwnID has a handler push its message's id. Only this error says that the
// message is in flight.
func TestHandlerPushesItsOwnID(t *testing.T) {
	hs := map[string]conformance.Harness{"memory": {New: func(context.Context) (backend.Backend, func(), error) { return memory.New(), func() {}, nil }}}
	for name, h := range redisBackends(t) {
		if !strings.Contains(name, "cluster") {
			hs[name] = h
		}
	}
	for name, h := range hs {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			b, clean, err := h.New(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer clean()
			defer func() { _ = b.Close() }()
			q, err := delayq.New(ctx, "own-id", delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = q.Close() }()
			if !q.Supports(delayq.Deduplicating) || !q.Supports(delayq.OwnIDs) {
				t.Skip("this store declares that it takes no ids, or does not deduplicate them: no push is a duplicate")
			}
			push := func(inFlight bool, state string) {
				_, err := q.Push(ctx, []byte("second"), delayq.ID("a"))
				if !errors.Is(err, delayq.ErrDuplicate) || errors.Is(err, delayq.ErrInFlight) || strings.Contains(err.Error(), "in flight") != inFlight {
					t.Errorf("pushing the id of a message that is %s: %v", state, err)
				}
			}
			if _, err := q.Push(ctx, []byte("first"), delayq.ID("a")); err != nil {
				t.Fatal(err)
			}
			push(false, "scheduled")
			err = q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
				push(true, "in flight")
				if d.Attempt == 1 {
					return d.Nack(ctx, 0)
				}
				defer cancel()
				return d.DeadLetter(ctx, "of the test")
			})
			if !errors.Is(context.Cause(ctx), context.Canceled) {
				t.Fatalf("Consume: %v", err)
			}
			ctx = t.Context()
			push(false, "dead")
		})
	}
}
