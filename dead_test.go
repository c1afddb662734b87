package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
					must(t, receive(t, q).DeadLetter(t.Context(), "again"))
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

// filterable returns a queue on s with 600 dead letters, more than is redriven at once. Each has one
// of two types, one of three reasons, and died a second after the one before.
func filterable(t *testing.T, s *seam) (q delayq.Queue, began time.Time) {
	t.Helper()
	q, began = newQueue(t, s.option()), time.Now()
	for i := range 600 {
		push(t, q, delayq.ID(fmt.Sprintf("%03d", i)), delayq.Type(fmt.Sprint("type ", i%2)), delayq.Header("n", fmt.Sprint(i)))
		must(t, receive(t, q).Dead(t.Context(), fmt.Sprintf("reason %d of %d", i%3, i)))
		time.Sleep(time.Second)
	}
	synctest.Wait() // the retention looks at what has died: s may be changed when it is done
	return q, began
}

func TestDeadFilter(t *testing.T) {
	type test struct {
		filter func(began time.Time) delayq.DeadFilter
		picks  func(i int) bool
	}
	queuetest.Cases(t, map[string]test{
		"age": {func(began time.Time) delayq.DeadFilter {
			return delayq.DeadFilter{DiedBefore: began.Add(7 * time.Second)}
		},
			func(i int) bool { return i < 7 }},
		"reason": {func(time.Time) delayq.DeadFilter { return delayq.DeadFilter{ReasonPrefix: "reason 2 of"} },
			func(i int) bool { return i%3 == 2 }},
		"prefix, not part": {func(time.Time) delayq.DeadFilter { return delayq.DeadFilter{ReasonPrefix: "2 of"} },
			func(int) bool { return false }},
		"type": {func(time.Time) delayq.DeadFilter {
			return delayq.DeadFilter{Headers: map[string]string{delayq.TypeHeader: "type 1"}}
		}, func(i int) bool { return i%2 == 1 }},
		"two headers": {func(time.Time) delayq.DeadFilter {
			return delayq.DeadFilter{Headers: map[string]string{delayq.TypeHeader: "type 1", "n": "17"}}
		}, func(i int) bool { return i == 17 }},
		"header that is not there": {func(time.Time) delayq.DeadFilter {
			return delayq.DeadFilter{Headers: map[string]string{"none": ""}}
		}, func(int) bool { return false }},
		"all of it": {func(began time.Time) delayq.DeadFilter {
			return delayq.DeadFilter{DiedBefore: began.Add(time.Minute), ReasonPrefix: "reason 0", Headers: map[string]string{delayq.TypeHeader: "type 0"}}
		}, func(i int) bool { return i < 60 && i%6 == 0 }},
		"every letter": {func(began time.Time) delayq.DeadFilter { return delayq.DeadFilter{DiedBefore: began.Add(time.Hour)} },
			func(int) bool { return true }},
	}, func(t *testing.T, tt test) {
		for _, do := range []func(delayq.DeadLetters, context.Context, delayq.DeadFilter) (int, error){
			delayq.DeadLetters.RedriveWhere, delayq.DeadLetters.DeleteWhere,
		} {
			q, began := filterable(t, newSeam())
			var left []string
			picked := 0
			for i := range 600 {
				if tt.picks(i) {
					picked++
				} else {
					left = append(left, fmt.Sprintf("%03d", i))
				}
			}
			n, err := do(q.Dead(), t.Context(), tt.filter(began))
			must(t, err)
			if n != picked {
				t.Errorf("it returns %d, want %d", n, picked)
			}
			var got []string
			for _, l := range deadLetters(t, q) {
				got = append(got, l.ID)
			}
			if !slices.Equal(got, left) {
				t.Errorf("%d letters are left, want %d", len(got), len(left))
			}
		}
	})
}

// RedriveWhere returns how many came back when the store fails or ctx ends.
func TestRedriveWhereEnds(t *testing.T) {
	type test struct {
		fails string // after the first call of this operation
		ends  bool   // ctx ends then, instead
		want  int
		err   error
	}
	queuetest.Cases(t, map[string]test{
		"listing fails":   {"list dead", false, 0, errStore},
		"redriving fails": {"redrive", false, 500, errStore},
		"ctx ends":        {"redrive", true, 500, context.Canceled},
	}, func(t *testing.T, tt test) {
		s := newSeam()
		q, began := filterable(t, s)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		if tt.ends {
			s.after = func(op string) {
				if op == tt.fails {
					end()
				}
			}
		} else {
			s.before = later(tt.fails)
		}
		n, err := q.Dead().RedriveWhere(ctx, delayq.DeadFilter{DiedBefore: began.Add(time.Hour)})
		wantIs(t, err, tt.err)
		if n != tt.want {
			t.Errorf("%d came back, want %d", n, tt.want)
		}
		wantCounts(t, q, delayq.Stats{Ready: int64(tt.want), Dead: 600 - int64(tt.want)})
	})
}

// A letter that dies again at once is redriven once.
func TestRedriveWhereRedrivesOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		q, _ := filterable(t, s)
		redriven := 0
		s.after = func(op string) {
			if op == "redrive" {
				for stats(t, q).Ready > 0 {
					redriven++
					must(t, receive(t, q).Dead(t.Context(), "reason 0 again"))
				}
			}
		}
		n, err := q.Dead().RedriveWhere(t.Context(), delayq.DeadFilter{ReasonPrefix: "reason 0"})
		must(t, err)
		if n != 200 || redriven != 200 {
			t.Errorf("%d came back, and it returns %d; want 200", redriven, n)
		}
		wantCounts(t, q, delayq.Stats{Dead: 600})
	})
}
