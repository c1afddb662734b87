package delayq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// A scene has a message in each state.
func TestGetShowsEachState(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	push(t, s, delayq.ID("cancelled"), delayq.UniqueFor(time.Hour), delayq.After(time.Hour))
	must(t, s.Cancel(t.Context(), "cancelled"))
	s.wantUnchanged(t, func() {
		for id, want := range map[string]delayq.State{
			"scheduled": delayq.StateScheduled, "ready": delayq.StateReady, s.held.ID: delayq.StateInFlight,
			"dead": delayq.StateDead, "cancelled": delayq.StateDone,
		} {
			m, err := s.Get(t.Context(), id)
			if err != nil || m.ID != id || m.State != want || m.UniqueUntil.IsZero() != (want != delayq.StateDone) {
				t.Errorf("message %s, which is %v: got %+v, %v", id, want, m, err)
			}
			if m.LeaseUntil.IsZero() != (want != delayq.StateInFlight) || m.Died.IsZero() != (want != delayq.StateDead) {
				t.Errorf("message %s, which is %v, has times of another state: %+v", id, want, m)
			}
		}
		_, err := s.Get(t.Context(), "unknown")
		var op *delayq.OpError
		if wantIs(t, err, delayq.ErrNotFound); !errors.As(err, &op) || op.Op != "get" || op.ID != "unknown" {
			t.Errorf("%v does not name the operation and the message", err)
		}
	})
}

func TestGetBatchKeepsTheOrderOfItsIDs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ms, err := s.GetBatch(t.Context(), []string{"dead", "unknown", "ready", "dead"})
	var batch *delayq.BatchError
	if !errors.As(err, &batch) || len(batch.Errs) != 4 || len(ms) != 4 {
		t.Fatalf("got %d messages and %v", len(ms), err)
	}
	for i, want := range []string{"dead", "", "ready", "dead"} {
		if ms[i].ID != want || errors.Is(batch.Errs[i], delayq.ErrNotFound) != (want == "") {
			t.Errorf("entry %d is message %q with %v, want %q", i, ms[i].ID, batch.Errs[i], want)
		}
	}
	if ms, err := s.GetBatch(t.Context(), []string{"ready", "scheduled"}); err != nil || ms[1].State != delayq.StateScheduled {
		t.Errorf("got %+v, %v", ms, err)
	}
}

func TestGetShowsLimits(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	push(t, q, delayq.ID("a"), delayq.Attempts(3), delayq.After(time.Hour))
	ms, err := q.GetBatch(t.Context(), []string{"a"})
	if err != nil || ms[0].Limits == nil || ms[0].Limits.Attempts != 3 || len(ms[0].Headers) > 0 {
		t.Errorf("got %+v, %v", ms, err)
	}
}
