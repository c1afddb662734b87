package memory

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// What any queue keeps, package conformance checks on this one too.

// Receive takes no more than there is, though the limit is high.
func TestReceiveAllocatesForDueMessagesOnly(t *testing.T) {
	q, _ := open(t)
	for i := range 2000 {
		mustPush(t, q, string(rune('A'+i)), time.Hour)
	}
	mustPush(t, q, "due", 0)
	ds := mustTake(t, q, 10_000, time.Minute)
	if len(ds) != 1 || cap(ds) > 8 {
		t.Errorf("%d deliveries in room for %d", len(ds), cap(ds))
	}
}

func TestListDeadCursor(t *testing.T) {
	q, _ := open(t)
	_, _, err := q.ListDead(t.Context(), "elsewhere", 1)
	_, _, idsErr := q.ListDeadIDs(t.Context(), "elsewhere", 1)
	for _, err := range []error{err, idsErr} {
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), `"elsewhere"`) {
			t.Errorf("a foreign cursor: %v", err)
		}
	}
}

// A handler that pushes its own message again is told why nothing came of it.
func TestDuplicateOfALeasedMessage(t *testing.T) {
	t.Parallel()
	q, _ := open(t)
	mustPush(t, q, "a", 0)
	waiting := push(q, "a", 0)
	mustTake(t, q, 1, time.Minute)
	held := push(q, "a", 0)
	if !errors.Is(waiting, backend.ErrDuplicate) || !errors.Is(held, backend.ErrDuplicate) || errors.Is(held, backend.ErrInFlight) {
		t.Errorf("errors %v and %v, want ErrDuplicate", waiting, held)
	}
	if strings.Contains(waiting.Error(), "in flight") || !strings.Contains(held.Error(), "in flight") {
		t.Errorf("errors %q and %q, want the second to tell", waiting, held)
	}
}

// Handles list, redrive and delete dead letters while others make them. The suite's clients do the
// rest at the same time.
func TestDeadLettersOfManyHandles(t *testing.T) {
	t.Parallel()
	const handles, each = 4, 200
	b := New()
	var deleted atomic.Int64
	var all sync.WaitGroup
	for h := range handles {
		q := openOn(t, b, nil)
		all.Go(func() {
			for i := range each {
				makeDead(t, q, fmt.Sprint(h, " ", i))
				deleted.Add(removeDead(t, q))
			}
		})
	}
	all.Wait()
	mustBeWhole(t, openOn(t, b, nil).store)
	if left, _ := b.Usage(); int64(left) != handles*each-deleted.Load() {
		t.Errorf("%d messages are left, %d of %d were deleted", left, deleted.Load(), handles*each)
	}
}

// makeDead pushes a message, and makes one that is due a dead letter.
func makeDead(t *testing.T, q *queue, id string) {
	err := push(q, id, 0)
	ds, receiveErr := q.Receive(t.Context(), 1, time.Hour)
	if err := errors.Join(err, receiveErr); err != nil {
		t.Errorf("pushing and receiving: %v", err)
		return
	}
	if err := one(q.Dead(t.Context(), []backend.DeadLetterRequest{{Lease: ds[0].Lease()}})); err != nil {
		t.Errorf("Dead: %v", err)
	}
}

// removeDead redrives some dead letters, and returns how many others it deletes.
func removeDead(t *testing.T, q *queue) (deleted int64) {
	ls, _, err := q.ListDead(t.Context(), "", 5)
	ids, _, idsErr := q.ListDeadIDs(t.Context(), "", 5)
	_, statsErr := q.Stats(t.Context())
	if err := errors.Join(err, idsErr, statsErr); err != nil {
		t.Errorf("%d letters, %v", len(ls), err)
	}
	for i, id := range ids {
		if i%2 == 0 {
			q.Redrive(t.Context(), []string{id})
		} else if one(q.DeleteDead(t.Context(), []string{id})) == nil {
			deleted++
		}
	}
	return deleted
}

// A cursor from before a purge skips none of the dead letters that come after it.
func TestListDeadCursorAfterPurge(t *testing.T) {
	q, _ := open(t)
	die := func(id string) {
		mustPush(t, q, id, 0)
		d := mustTake(t, q, 1, time.Minute)[0]
		mustAll(t, q.Dead(t.Context(), []backend.DeadLetterRequest{{Lease: d.Lease()}}))
	}
	for _, id := range []string{"a", "b", "c"} {
		die(id)
	}
	_, cursor, err := q.ListDead(t.Context(), "", 2)
	must(t, err)
	_, err = q.Purge(t.Context())
	must(t, err)
	die("d")
	ls, _, err := q.ListDead(t.Context(), cursor, 2)
	must(t, err)
	if len(ls) != 1 || ls[0].ID != "d" {
		t.Errorf("listed %+v, want d", ls)
	}
}
