package delayq_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// outcomes are the errors of a batch's entries.
func outcomes(t *testing.T, err error) []error {
	t.Helper()
	var batch *delayq.BatchError
	if !errors.As(err, &batch) {
		t.Fatalf("error %v is no BatchError", err)
	}
	return batch.Errs
}

func wantOutcomes(t *testing.T, err error, want ...error) {
	t.Helper()
	got := outcomes(t, err)
	if !slices.EqualFunc(got, want, errors.Is) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

func dueOf(t *testing.T, q delayq.Queue, id string) time.Time {
	t.Helper()
	page, _, err := q.Peek(t.Context(), "", 100)
	must(t, err)
	for _, p := range page {
		if p.ID == id {
			return p.Due
		}
	}
	t.Fatalf("message %s does not wait", id)
	return time.Time{}
}

func TestCancelBatchHasAnOutcomeForEach(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	push(t, s, delayq.ID("other"), delayq.After(time.Hour))
	err := s.CancelBatch(t.Context(), []string{"scheduled", "held", "ready", "dead", "none", "other", "other"})
	wantIs(t, err, delayq.ErrInFlight)
	wantOutcomes(t, err, nil, delayq.ErrInFlight, nil, delayq.ErrNotFound, delayq.ErrNotFound, nil, delayq.ErrNotFound)
	wantCounts(t, s, delayq.Stats{InFlight: 1, Dead: 1})
	must(t, s.CancelBatch(t.Context(), nil))
}

func TestRescheduleBatchHasAnOutcomeForEach(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	later := noon.Add(2 * time.Hour)
	err := s.RescheduleBatch(t.Context(), []delayq.Move{{ID: "scheduled", Due: later}, {ID: "held"}, {ID: "ready", Delay: time.Minute}, {ID: "none"}})
	wantOutcomes(t, err, nil, delayq.ErrInFlight, nil, delayq.ErrNotFound)
	if got := dueOf(t, s, "scheduled"); !got.Equal(later) {
		t.Errorf("due %v, want %v", got, later)
	}
	if got := dueOf(t, s, "ready"); !got.Equal(noon.Add(time.Minute)) {
		t.Errorf("due %v, want a minute after noon", got)
	}
	must(t, s.RescheduleBatch(t.Context(), []delayq.Move{{ID: "ready", Delay: time.Hour}, {ID: "ready", Delay: time.Second}}))
	if got := dueOf(t, s, "ready"); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("of two entries for one id the first holds: due %v", got)
	}
	must(t, s.RescheduleBatch(t.Context(), nil))
}

func TestRescheduleAfterCountsByTheStoresClock(t *testing.T) {
	t.Parallel()
	clock := clockwork.NewFakeClockAt(noon)
	q := newQueue(t, delayq.WithClock(clock))
	id := push(t, q, delayq.After(time.Hour))
	clock.Advance(time.Minute)
	must(t, q.RescheduleAfter(t.Context(), id, 10*time.Minute))
	if got := dueOf(t, q, id); !got.Equal(noon.Add(11 * time.Minute)) {
		t.Errorf("due %v, want eleven minutes after noon", got)
	}
	wantIs(t, q.RescheduleAfter(t.Context(), "none", 0), delayq.ErrNotFound)
}

func TestBadMovesChangeNothing(t *testing.T) {
	t.Parallel()
	tooMany := make([]string, delayq.MaxBatch+1)
	for name, tt := range map[string]struct {
		do          func(s *scene) error
		what, value string
	}{
		"delay negative": {func(s *scene) error { return s.RescheduleAfter(t.Context(), "scheduled", -1) }, "delay", "-1ns"},
		"delay longest":  {func(s *scene) error { return s.RescheduleAfter(t.Context(), "scheduled", math.MaxInt64) }, "delay", "2562047h"},
		"id empty":       {func(s *scene) error { return s.RescheduleAfter(t.Context(), "", 0) }, "id", `""`},
		"batch: id":      {func(s *scene) error { return s.CancelBatch(t.Context(), []string{"scheduled", ""}) }, "id", `""`},
		"batch: size":    {func(s *scene) error { return s.CancelBatch(t.Context(), tooMany) }, "batch size", "10001"},
		"moves: size": {func(s *scene) error {
			return s.RescheduleBatch(t.Context(), make([]delayq.Move, delayq.MaxBatch+1))
		}, "batch size", "10001"},
		"moves: id": {func(s *scene) error {
			return s.RescheduleBatch(t.Context(), []delayq.Move{{ID: "scheduled"}, {ID: "a\x00"}})
		}, "id", `"a\x00"`},
		"moves: delay": {func(s *scene) error {
			return s.RescheduleBatch(t.Context(), []delayq.Move{{ID: "scheduled"}, {ID: "ready", Delay: -1}})
		}, "delay", "-1ns"},
		"moves: due": {func(s *scene) error {
			return s.RescheduleBatch(t.Context(), []delayq.Move{{ID: "scheduled"}, {ID: "ready", Due: after2200}})
		}, "due time", "2200-01-01T00:00:00.000000001"},
		"moves: both": {func(s *scene) error {
			return s.RescheduleBatch(t.Context(), []delayq.Move{{ID: "ready", Due: noon, Delay: 1}})
		}, "move", "due time and a delay"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.wantUnchanged(t, func() { wantInvalid(t, tt.do(s), tt.what, tt.value) })
		})
	}
}

func TestMovesOfABackendWithoutThem(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.traits = lacking(backend.Cancelling, backend.Rescheduling)
	q := newQueue(t, s.option())
	for name, err := range map[string]error{
		"cancel":     q.CancelBatch(t.Context(), []string{"a"}),
		"none":       q.CancelBatch(t.Context(), nil),
		"reschedule": q.RescheduleBatch(t.Context(), []delayq.Move{{ID: "a"}}),
		"after":      q.RescheduleAfter(t.Context(), "a", 0),
	} {
		t.Run(name, func(t *testing.T) { wantIs(t, err, delayq.ErrUnsupported) })
	}
}

func TestMetricsOfBatchedMoves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics())
		push(t, q, delayq.ID("a"), delayq.After(time.Hour))
		must(t, q.RescheduleAfter(t.Context(), "a", time.Minute))
		must(t, q.RescheduleBatch(t.Context(), []delayq.Move{{ID: "a"}}))
		must(t, q.CancelBatch(t.Context(), []string{"a"}))
		wantIs(t, q.CancelBatch(t.Context(), []string{"a"}), delayq.ErrNotFound)
		const duration = "messaging.client.operation.duration"
		w.wantTotal(t, 2, duration, operation("reschedule"))
		w.wantTotal(t, 2, duration, operation("cancel"))
		w.wantTotal(t, 1, duration, operation("cancel"), errorType("not_found"))
	})
}
