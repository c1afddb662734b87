package backend_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestDueIntervals(t *testing.T) {
	t.Parallel()
	bounds, labels := backend.DueBounds(), backend.DueLabels()
	if len(labels) != len(backend.DueHistogram{}) || len(bounds) != len(labels)-1 {
		t.Fatalf("%d intervals have %d bounds and %d labels", len(backend.DueHistogram{}), len(bounds), len(labels))
	}
	for i, bound := range bounds {
		if at, after := backend.DueInterval(bound), backend.DueInterval(bound+1); at != i || after != i+1 {
			t.Errorf("a message due in %v is in interval %d, and one due later in %d; want %d, %d", bound, at, after, i, i+1)
		}
	}
	bounds[0] = time.Hour
	if backend.DueBounds()[0] != time.Minute {
		t.Error("a caller has changed the bounds")
	}
}

func TestCountWaiting(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var got backend.Stats
	for _, wait := range []time.Duration{time.Hour, -time.Minute, 0, -time.Second, 1, 8 * 24 * time.Hour} {
		got.CountWaiting(now.Add(wait), now)
	}
	want := backend.Stats{
		Scheduled: 3, Ready: 3, HeadDue: now.Add(-time.Minute), OldestReady: time.Minute, Due: backend.DueHistogram{0: 1, 2: 1, 6: 1},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
