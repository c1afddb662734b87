package handle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// A tally is a store that pushes and acks everything but the id "bad", and notes its activity.
type tally struct {
	Messages
	began  time.Time
	stalls bool
	away   atomic.Pointer[error] // why the store counts nothing

	mu     sync.Mutex
	counts []counted
}

type counted struct {
	at time.Duration
	backend.Activity
}

func (*tally) Schedule(_ context.Context, ms []backend.Message) (errs []error) {
	for _, m := range ms {
		errs = append(errs, nil)
		if m.ID == "bad" {
			errs[len(errs)-1] = backend.ErrDuplicate
		}
	}
	return errs
}

func (*tally) Ack(context.Context, []backend.Lease) []error { return nil } // all are done

func (s *tally) count(ctx context.Context, a backend.Activity) error {
	s.mu.Lock()
	s.counts = append(s.counts, counted{time.Since(s.began), a})
	s.mu.Unlock()
	if s.stalls {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, ctx.Err())
	}
	if err := s.away.Load(); err != nil {
		return *err
	}
	return nil
}

func openTally(t *testing.T, s *tally) *Queue {
	t.Helper()
	s.began = time.Now()
	claim := func(context.Context, int, time.Duration) (Claim, error) {
		now := time.Now()
		return Claim{Deliveries: []backend.Delivery{
			{ID: "first", Attempt: 1, Due: now.Add(-3 * time.Millisecond), Until: now.Add(time.Minute)},
			{ID: "again", Attempt: 2, Due: now.Add(-3 * time.Millisecond), Until: now.Add(time.Minute)},
		}}, nil
	}
	q := New(Source{Messages: s, Name: "q", Claim: claim, Count: s.count}, &Hub{Poll: poll}, slog.New(slog.DiscardHandler), nil)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// A handle adds what it did once a second, and what is left when it closes.
func TestActivity(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &tally{}
		q := openTally(t, s)
		q.Schedule(t.Context(), []backend.Message{{ID: "a"}, {ID: "bad"}, {ID: "b"}})
		if _, err := q.Receive(t.Context(), 2, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond) // virtual
		q.Ack(t.Context(), make([]backend.Lease, 3))
		time.Sleep(time.Hour) // virtual
		q.Schedule(t.Context(), []backend.Message{{ID: "bad"}})
		time.Sleep(time.Hour) // virtual
		q.Schedule(t.Context(), []backend.Message{{ID: "c"}})
		_ = q.Close()
		q.Schedule(t.Context(), []backend.Message{{ID: "d"}})
		time.Sleep(time.Hour) // virtual
		late := backend.LatenessHistogram{2: 1}
		want := []counted{{time.Second, backend.Activity{Pushed: 2, Acked: 3, Lateness: late}}, {2*time.Hour + 500*time.Millisecond, backend.Activity{Pushed: 1}}}
		if !slices.Equal(s.counts, want) {
			t.Errorf("counted %v, want %v", s.counts, want)
		}
	})
}

// A store that does not reply holds no call up, and Close for three seconds. What it was told is not
// told again.
func TestActivityOfAStoreThatStalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &tally{stalls: true}
		q := openTally(t, s)
		for range 3 {
			q.Schedule(t.Context(), []backend.Message{{ID: "a"}})
			time.Sleep(1200 * time.Millisecond) // virtual
		}
		_ = q.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		if took := time.Since(s.began); took != 3600*time.Millisecond+closeWithin || len(s.counts) != 1 {
			t.Errorf("closed after %v, counted %v", took, s.counts)
		}
	})
}

// What a store has certainly not counted is added a second later, with what came since; and with Close.
// What it refuses is forgotten.
func TestActivityOfAStoreThatIsAway(t *testing.T) {
	late := backend.LatenessHistogram{2: 1}
	first, second := backend.Activity{Pushed: 1, Acked: 2, Lateness: late}, backend.Activity{Pushed: 1, Lateness: late}
	both := backend.Activity{Pushed: 2, Acked: 2, Lateness: backend.LatenessHistogram{2: 2}}
	for name, c := range map[string]struct {
		fails error
		want  []backend.Activity // that the store is told of
	}{
		"away":    {backend.ErrUnavailable, []backend.Activity{first, both, both}},
		"late":    {context.DeadlineExceeded, []backend.Activity{first, both, both}},
		"refuses": {errors.New("no right"), []backend.Activity{first, second}},
		"broken":  {fmt.Errorf("%w: %w", backend.ErrUnavailable, backend.ErrOutcomeUnknown), []backend.Activity{first, second}},
	} {
		for _, back := range []bool{true, false} { // before Close
			t.Run(fmt.Sprintf("%s, back %v", name, back), func(t *testing.T) {
				bubble(t, func(t *testing.T) { away(t, c.fails, back, c.want) })
			})
		}
	}
}

func away(t *testing.T, fails error, back bool, want []backend.Activity) {
	s := &tally{}
	s.away.Store(&fails)
	q := openTally(t, s)
	pushAndReceive := func() {
		q.Schedule(t.Context(), []backend.Message{{ID: "a"}})
		if _, err := q.Receive(t.Context(), 2, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	pushAndReceive()
	q.Ack(t.Context(), make([]backend.Lease, 2))
	time.Sleep(1200 * time.Millisecond) // virtual; the store may be about to fail
	pushAndReceive()
	time.Sleep(1700 * time.Millisecond) // virtual
	if back {
		s.away.Store(nil)
	}
	_ = q.Close()
	time.Sleep(time.Hour) // virtual
	var got []backend.Activity
	for _, told := range s.counts {
		got = append(got, told.Activity)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the store was told of %v, want %v", got, want)
	}
}
