package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// The list of pages for messages in flight is long beside many pending messages. One hand-out after
// another uses the same list, which goes with the last message.
func TestHeldKeysAreUsedAgain(t *testing.T) {
	const pending = 2 * pageLen * heldLen
	q, _ := open(t)
	ms := make([]backend.Message, pending)
	for i := range ms {
		ms[i] = backend.Message{ID: fmt.Sprint("id ", i), Delay: time.Hour}
	}
	mustAll(t, q.Schedule(t.Context(), ms))
	var list **heldPage
	for i := range 3 {
		mustPush(t, q, fmt.Sprint("due ", i), 0)
		mustAll(t, q.Ack(t.Context(), leasesOf(mustTake(t, q, 1, time.Minute))))
		if len(q.held.pages) <= pageLen {
			t.Fatalf("hand-out %d leaves a list of %d pages", i, len(q.held.pages))
		}
		if first := &q.held.pages[0]; list == nil {
			list = first
		} else if first != list {
			t.Errorf("hand-out %d makes the list again", i)
		}
	}
	for _, m := range ms {
		mustAll(t, q.Cancel(t.Context(), []string{m.ID}))
	}
	mustBeEmpty(t, q.store)
}

// Pages that were given back are used again, each for one range of slots.
func TestHeldSparePages(t *testing.T) {
	var h heldKeys
	const slots = 4 * heldLen
	for round := range uint64(3) {
		for slot := range uint32(slots) {
			h.add(slot, key{int64(slot), round})
		}
		for slot := range uint32(slots) {
			if got, want := h.at(slot), (key{int64(slot), round}); got != want {
				t.Errorf("round %d: slot %d has key %v, want %v", round, slot, got, want)
			}
			h.remove(slot)
		}
		if len(h.spare) != slots/heldLen {
			t.Errorf("round %d leaves %d spare pages, want %d", round, len(h.spare), slots/heldLen)
		}
	}
}
