package conformance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/memory"
)

// The unseeing backend is memory that cannot look for the messages that it cancels: an id that was
// never pushed can be cancelled. With the fault, a message that is pushed under that id later is
// lost.
type unseeing struct {
	backend.Backend
	swallows bool
}

func (b unseeing) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Name, t.Lacks = "unseeing", t.Lacks.With(backend.CancelNotFound)
	return t
}

func (b unseeing) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return &unseeingQueue{Queue: q, swallows: b.swallows, pushed: make(map[string]bool), doomed: make(map[string]bool)}, nil
}

type unseeingQueue struct {
	backend.Queue
	swallows bool

	mu             sync.Mutex
	pushed, doomed map[string]bool
}

func (q *unseeingQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range ms {
		q.pushed[m.ID] = true
	}
	return q.Queue.Schedule(ctx, slices.DeleteFunc(slices.Clone(ms), func(m backend.Message) bool { return q.doomed[m.ID] }))
}

func (q *unseeingQueue) Cancel(ctx context.Context, ids []string) []error {
	errs := slices.Clone(q.Queue.Cancel(ctx, ids))
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, err := range errs {
		if errors.Is(err, backend.ErrNotFound) && !q.pushed[ids[i]] {
			errs[i], q.doomed[ids[i]] = nil, q.swallows
		}
	}
	return errs
}

// TestSuiteCatchesWhereNothingIsSeen wants the suite to accept such a store, and to catch the
// fault.
func TestSuiteCatchesWhereNothingIsSeen(t *testing.T) {
	for _, swallows := range []bool{false, true} {
		h := conformance.Harness{Virtual: true, Patience: 300 * time.Millisecond}
		h.New = func(context.Context) (backend.Backend, func(), error) {
			return unseeing{memory.New(), swallows}, nil, nil
		}
		err := conformance.Verify(t.Context(), h, "cancel", "cancel-in-flight", "cancel-settled", "cancel-race", "leaves-nothing")
		var v *conformance.Violation
		switch found := errors.As(err, &v); {
		case found != swallows:
			t.Errorf("a store that swallows pushes: %t; found: %v", swallows, err)
		case found && v.Check != "cancel-settled":
			t.Errorf("found by another check: %v", err)
		}
	}
}
