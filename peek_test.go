package delayq_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// A scene has messages in each state: only two of them wait.
func TestPeekShowsWhatWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.wantUnchanged(t, func() {
		page, next, err := s.Peek(t.Context(), "", 1)
		if err != nil || len(page) != 1 || page[0].ID != "ready" || next == "" {
			t.Fatalf("got %+v, %q, %v", page, next, err)
		}
		page, next, err = s.Peek(t.Context(), next, 1)
		if err != nil || len(page) != 1 || page[0].ID != "scheduled" || next != "" || page[0].Due.IsZero() {
			t.Fatalf("got %+v, %q, %v", page, next, err)
		}
	})
}

func TestPurgeTakesAll(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	push(t, s, delayq.ID("unique"), delayq.UniqueFor(time.Hour), delayq.After(time.Hour))
	n, err := s.Purge(t.Context())
	if err != nil || n != 5 {
		t.Errorf("got %d, %v; want 5", n, err)
	}
	if got := stats(t, s); got != (delayq.Stats{}) {
		t.Errorf("left: %+v", got)
	}
	wantIs(t, s.held.Ack(t.Context()), delayq.ErrLeaseLost)
	push(t, s, delayq.ID("unique"))
}
