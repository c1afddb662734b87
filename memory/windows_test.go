package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

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
func TestWindowsThatEndedDoNotGather(t *testing.T) {
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

// An id that is taken counts toward the cap in bytes for as long as it is.
func TestWindowsCountInBytes(t *testing.T) {
	q, clock := open(t, MaxBytes(100))
	var err error
	stored := 0
	for ; err == nil; stored++ {
		if err = pushUnique(q, fmt.Sprint("an id of its own ", stored), time.Minute); err == nil {
			takeAndAck(t, q)
		}
	}
	if !errors.Is(err, backend.ErrFull) || stored < 3 {
		t.Fatalf("push %d: %v", stored, err)
	}
	if messages, bytes := q.usage(); messages != 0 || bytes == 0 || bytes > 100 {
		t.Errorf("%d messages, %d bytes", messages, bytes)
	}
	clock.Advance(time.Minute)
	must(t, pushUnique(q, "after that", time.Minute))
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

// TestWindowsModel compares the windows with a map, whatever is done.
func TestWindowsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q, clock := open(t)
		ends := make(map[string]time.Time)
		rt.Repeat(map[string]func(*rapid.T){
			"push": func(rt *rapid.T) {
				id := rapid.StringMatching(`[a-e]{1,2}`).Draw(rt, "id")
				window := time.Duration(rapid.IntRange(0, 9).Draw(rt, "window")) * time.Second
				var want error
				if ends[id].After(clock.Now()) {
					want = backend.ErrDuplicate
				} else if window > 0 {
					ends[id] = clock.Now().Add(window)
				}
				if err := pushUnique(q, id, window); !errors.Is(err, want) {
					rt.Fatalf("pushing %s: %v, want %v", id, err, want)
				} else if err == nil {
					takeAndAck(rt, q)
				}
			},
			"pass": func(rt *rapid.T) {
				clock.Advance(time.Duration(rapid.IntRange(0, 5).Draw(rt, "seconds")) * time.Second)
			},
			"": func(rt *rapid.T) { mustBeWhole(rt, q.store) },
		})
	})
}
