package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func pushUnique(q *queue, id string, window time.Duration) error {
	return one(q.Schedule(context.Background(), []backend.Message{{ID: id, UniqueFor: window}}))
}

// takeAndAck has every message that is due be done.
func takeAndAck(t tb, q *queue) {
	t.Helper()
	ds := mustTake(t, q, 1000, time.Minute)
	mustAll(t, q.Ack(context.Background(), leasesOf(ds)))
}

// The store has no trace of windows once they are over and the queue was used again.
func TestWindowsAreGivenBack(t *testing.T) {
	q, clock := open(t)
	const n = 1000
	for i := range n {
		must(t, pushUnique(q, fmt.Sprint("id ", i), time.Duration(i+1)*time.Second))
	}
	takeAndAck(t, q)
	mustBeWhole(t, q.store)
	if _, bytes := q.usage(); q.windows == nil || bytes < n*int64(len("id 0")) {
		t.Fatalf("windows of %d ids take %d bytes", n, bytes)
	}
	clock.Advance(n * time.Second)
	must(t, push(q, fmt.Sprint("id ", n-1), 0)) // its window is still there, and ends now
	takeAndAck(t, q)
	for range n/fewWindows + 1 {
		_, err := q.Stats(context.Background())
		must(t, err)
	}
	if q.windows != nil {
		t.Errorf("%d windows are left", q.windows.ends.len())
	}
	mustBeEmpty(t, q.store)
}

// In batches windows open as fast as can be, and yet those that ended do not gather.
func TestEndedWindowsAreFreed(t *testing.T) {
	q, clock := open(t)
	const batch = 500
	for round := range 10 {
		ms := make([]backend.Message, batch)
		for i := range ms {
			ms[i] = backend.Message{ID: fmt.Sprint(round, " ", i), UniqueFor: time.Second}
		}
		mustAll(t, q.Schedule(context.Background(), ms))
		takeAndAck(t, q)
		clock.Advance(time.Second)
		if n := q.windows.ends.len(); n > batch {
			t.Fatalf("round %d: %d windows, of which no more than %d last", round, n, batch)
		}
	}
}

func TestWindowsBoundedByTheEndOfTime(t *testing.T) {
	q, clock := open(t)
	clock.Advance(200 * 365 * 24 * time.Hour)
	must(t, pushUnique(q, "a", backend.MaxUnique))
	takeAndAck(t, q)
	if err := push(q, "a", 0); !errors.Is(err, backend.ErrDuplicate) {
		t.Errorf("the id is taken: %v", err)
	}
}
