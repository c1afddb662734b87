package delayq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

func peeking(cursor string, limit int) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, _, err := s.Peek(ctx, cursor, limit)
		return err
	}
}

func TestPeekRefusesBadArguments(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.wantUnchanged(t, func() {
		for _, limit := range []int{-1, 0, delayq.MaxBatch + 1} {
			wantInvalid(t, peeking("", limit)(s, t.Context()), "limit", fmt.Sprint(limit))
		}
		for _, cursor := range []string{"x", "1", "1.", ".1", "1.2.3", "-"} {
			wantInvalid(t, peeking(cursor, 1)(s, t.Context()), "cursor", cursor)
		}
	})
}

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

func TestPeekAndPurgeMayBeMissing(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.traits = lacking(delayq.Peeking, delayq.Purging)
	q := newQueue(t, s.option())
	_, _, err := q.Peek(t.Context(), "", 1)
	wantIs(t, err, delayq.ErrUnsupported)
	_, err = q.Purge(t.Context())
	wantIs(t, err, delayq.ErrUnsupported)
	for _, f := range []delayq.Feature{delayq.Peeking, delayq.Purging} {
		if q.Supports(f) || !newQueue(t).Supports(f) {
			t.Errorf("%v: supported where it is lacking, or not where it is there", f)
		}
	}
}
