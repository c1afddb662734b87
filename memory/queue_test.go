package memory

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// What any queue keeps, package conformance checks on this one too.

// Receive takes no more than there is, though the limit is high.
func TestReceiveAllocatesForDueMessagesOnly(t *testing.T) {
	q, _ := open(t)
	for i := range 2000 {
		mustPush(t, q, string(rune('A'+i)), time.Hour)
	}
	mustPush(t, q, "due", 0)
	ds := mustTake(t, q, 10_000, time.Minute)
	if len(ds) != 1 || cap(ds) > 8 {
		t.Errorf("%d deliveries in room for %d", len(ds), cap(ds))
	}
}

func TestListDeadCursor(t *testing.T) {
	q, _ := open(t)
	_, _, err := q.ListDead(t.Context(), "elsewhere", 1)
	_, _, idsErr := q.ListDeadIDs(t.Context(), "elsewhere", 1)
	for _, err := range []error{err, idsErr} {
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), `"elsewhere"`) {
			t.Errorf("a foreign cursor: %v", err)
		}
	}
}

// A handler that pushes its own message again is told why nothing came of it.
func TestDuplicateOfALeasedMessage(t *testing.T) {
	t.Parallel()
	q, _ := open(t)
	mustPush(t, q, "a", 0)
	waiting := push(q, "a", 0)
	mustTake(t, q, 1, time.Minute)
	held := push(q, "a", 0)
	if !errors.Is(waiting, backend.ErrDuplicate) || !errors.Is(held, backend.ErrDuplicate) || errors.Is(held, backend.ErrInFlight) {
		t.Errorf("errors %v and %v, want ErrDuplicate", waiting, held)
	}
	if strings.Contains(waiting.Error(), "in flight") || !strings.Contains(held.Error(), "in flight") {
		t.Errorf("errors %q and %q, want the second to tell", waiting, held)
	}
}
