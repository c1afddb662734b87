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
