package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/delayq/delayq"
)

// TestContextOfNewBoundsTheOpeningAlone ends New's context and uses the queue.
func TestContextOfNewBoundsTheOpeningAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q, err := delayq.New(ctx, "orders")
	must(t, err)
	defer func() { must(t, q.Close()) }()
	cancel()
	push(t, q)
	d, err := q.Receive(t.Context())
	must(t, err)
	must(t, d.Ack(t.Context()))
}

// TestIDsOfUnknownOutcome has the store lose its reply. The ids are returned all the same, and a
// push with them stores nothing twice.
func TestIDsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.before = func(_ context.Context, op string) error {
		if op == "schedule" {
			return fmt.Errorf("%w: the reply was lost", delayq.ErrOutcomeUnknown)
		}
		return nil
	}
	q := newQueue(t, s.option())
	id, err := q.Push(t.Context(), []byte("one"))
	if id == "" || !errors.Is(err, delayq.ErrOutcomeUnknown) {
		t.Errorf("Push returned %q, %v", id, err)
	}
	ids, err := q.PushBatch(t.Context(), []delayq.Message{{Body: []byte("two")}, {Body: []byte("three"), ID: "three"}})
	if len(ids) != 2 || ids[0] == "" || ids[1] != "three" || !errors.Is(err, delayq.ErrOutcomeUnknown) {
		t.Errorf("PushBatch returned %q, %v", ids, err)
	}
	s.before = nil
	for _, id := range append(ids, id) {
		_, err := q.Push(t.Context(), nil, delayq.ID(id))
		must(t, err)
	}
}
