package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// graveyard returns a queue on s with n dead letters: 000, 001, …
func graveyard(t *testing.T, n int, s *seam) delayq.Queue {
	t.Helper()
	q := newQueue(t, s.option())
	for i := range n {
		pushDead(t, q, fmt.Sprintf("%03d", i), fmt.Sprint("reason ", i))
	}
	return q
}

func TestAllDeadLetters(t *testing.T) {
	t.Parallel()
	// More than All asks for at once.
	const n = 250
	q := graveyard(t, n, newSeam())
	letters := deadLetters(t, q)
	if len(letters) != n || !slices.IsSortedFunc(letters, func(a, b delayq.DeadLetter) int { return strings.Compare(a.ID, b.ID) }) {
		t.Fatalf("All ranges over %d letters, want %d in the order of their deaths", len(letters), n)
	}
	if l := letters[7]; l.ID != "007" || l.Reason != "reason 7" || l.Attempts != 1 || string(l.Body) != "body" || l.Died.IsZero() || l.Due.IsZero() {
		t.Errorf("letter %+v is not what died", l)
	}
	for l, err := range q.Dead().All(t.Context()) {
		must(t, err)
		if l.ID != "000" {
			t.Errorf("All begins with %s", l.ID)
		}
		break
	}
}

func TestAllEndsWithAnError(t *testing.T) {
	t.Parallel()
	s := newSeam()
	q := graveyard(t, 150, s)
	s.before = later("list dead")
	got, errs := 0, 0
	for _, err := range q.Dead().All(t.Context()) {
		if err == nil {
			got++
			continue
		}
		if wantIs(t, err, errStore); errs > 0 {
			t.Fatal("it goes on after the error")
		}
		errs++
	}
	if got != 100 || errs != 1 {
		t.Errorf("%d letters and %d errors, want the first page and one error", got, errs)
	}
}

func TestRedriveReportsEach(t *testing.T) {
	type test struct {
		do   func(delayq.DeadLetters, context.Context, ...string) error
		want delayq.Stats
	}
	queuetest.Cases(t, map[string]test{
		"redrive": {delayq.DeadLetters.Redrive, delayq.Stats{Scheduled: 1, Ready: 2, InFlight: 1}},
		"delete":  {delayq.DeadLetters.Delete, delayq.Stats{Scheduled: 1, Ready: 1, InFlight: 1}},
	}, func(t *testing.T, tt test) {
		s := newScene(t)
		err := tt.do(s.Dead(), t.Context(), "scheduled", "held", "dead", "unknown", "dead")
		wantIs(t, err, delayq.ErrNotFound)
		var batch *delayq.BatchError
		if !errors.As(err, &batch) || len(batch.Errs) != 5 {
			t.Fatalf("error %v, want one for each id", err)
		}
		for i, err := range batch.Errs {
			if (i == 2) != (err == nil) {
				t.Errorf("id %d: %v", i, err)
			}
		}
		wantCounts(t, s, tt.want)
	})
}

func TestRedriveAll(t *testing.T) {
	t.Parallel()
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		q := graveyard(t, 150, newSeam())
		n, err := q.Dead().RedriveAll(t.Context())
		must(t, err)
		if n != 150 {
			t.Errorf("%d came back, want 150", n)
		}
		wantCounts(t, q, delayq.Stats{Ready: 150})
	})
	t.Run("those that die again at once", func(t *testing.T) {
		t.Parallel()
		const n = 550 // more than a page, so that the listing meets them again
		s := newSeam()
		q := graveyard(t, n, s)
		redriven := 0
		s.after = func(op string) {
			if op == "redrive" {
				for stats(t, q).Ready > 0 {
					if redriven++; redriven > n {
						t.Fatal("a message is redriven a second time")
					}
					must(t, receive(t, q).Dead(t.Context(), "again"))
				}
			}
		}
		got, err := q.Dead().RedriveAll(t.Context())
		must(t, err)
		if got != n {
			t.Errorf("%d came back, want %d", got, n)
		}
		wantCounts(t, q, delayq.Stats{Dead: n})
	})
	t.Run("beside somebody faster", func(t *testing.T) {
		t.Parallel()
		s := newSeam()
		q := graveyard(t, 3, s)
		other := newQueue(t, delayq.WithBackend(s.Backend))
		first := true
		s.before = func(ctx context.Context, op string) error {
			if op == "redrive" && first {
				first = false
				return other.Dead().Delete(ctx, "000")
			}
			return nil
		}
		n, err := q.Dead().RedriveAll(t.Context())
		must(t, err)
		if n != 2 {
			t.Errorf("%d came back, want 2", n)
		}
	})
	t.Run("until the store fails", func(t *testing.T) {
		t.Parallel()
		s := newSeam()
		q := graveyard(t, 550, s) // two pages
		s.before = later("redrive")
		n, err := q.Dead().RedriveAll(t.Context())
		wantIs(t, err, errStore)
		if n != 500 {
			t.Errorf("%d came back, want 500", n)
		}
		wantCounts(t, q, delayq.Stats{Ready: 500, Dead: 50})
	})
}
