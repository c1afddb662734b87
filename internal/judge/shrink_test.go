package judge_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/judge"
)

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestShrinkKeepsTheViolation stores a history of two messages, loads it, and shrinks it to the calls
// on one.
func TestShrinkKeepsTheViolation(t *testing.T) {
	t.Parallel()
	calls := tale{}.push(0, 1, 10).take(2, 20, 11, 1).settle(2, judge.Extend, 25, 20, judge.LeaseLost).
		take(3, 119, 11, 2).settle(3, judge.Ack, 130, 119, judge.OK)
	calls[0].Items = append(calls[0].Items, judge.Item{N: 2, Out: judge.OK})
	path := filepath.Join(t.TempDir(), "history.json")
	fatal(t, (&judge.History{Backend: "memory", Seed: 7, Calls: calls}).Save(path))
	h, err := judge.Load(path)
	fatal(t, err)
	v := judge.Violation{Rule: "lease", N: 1}
	small := judge.Shrink(h, v)
	if n := len(small.Calls); n >= len(calls) || n < 3 {
		t.Errorf("%d calls of %d are left", n, len(calls))
	}
	picture := judge.Timeline(small, 1)
	for _, want := range []string{"message 1 on memory, seed 7", "process 2: receive, ok, attempt 1", "push, ok"} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in\n%s", want, picture)
		}
	}
}

func TestUnsettled(t *testing.T) {
	t.Parallel()
	h := &judge.History{Calls: plot{}.push(0, 1, 0, 0, 0).take(5, 6, 1, 0)}
	h.Calls = append(h.Calls, plot{}.take(7, 8, 3, 0)[0]) // and no call settles it
	if got := judge.Unsettled(h); !slices.Equal(got, []uint32{2, 3}) {
		t.Errorf("%v are not settled, want 2 and 3", got)
	}
	if got := judge.LastDelivery(h.Calls).UnixNano(); got != epoch+9*msec {
		t.Errorf("the last delivery was at %d, want %d", got, epoch+9*msec)
	}
}
