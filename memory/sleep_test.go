package memory

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// An event that comes before the one that the timer waits for sets it anew. All come sooner than
// maxSleep, at which a lost one would be noticed.
func TestEarlierEventsSetTheTimer(t *testing.T) {
	for name, c := range map[string]struct {
		lease, delay time.Duration // of a message in flight and one that waits; 0 for none
		meanwhile    func(q *queue) []error
		want         string
		attempt      int
	}{
		"a push": {delay: 50 * time.Second, meanwhile: func(q *queue) []error {
			return q.Schedule(context.Background(), []backend.Message{{ID: "early", Delay: 10 * time.Second}})
		}, want: "early", attempt: 1},
		"a reschedule": {delay: 50 * time.Second, meanwhile: func(q *queue) []error {
			return q.Reschedule(context.Background(), []backend.Move{{ID: "due", Delay: 10 * time.Second}})
		}, want: "due", attempt: 1},
		"a lease that ends first": {lease: 10 * time.Second, delay: 20 * time.Second, want: "held", attempt: 2},
		"a lease that ends last":  {lease: 20 * time.Second, delay: 10 * time.Second, want: "due", attempt: 1},
		"a lease alone":           {lease: 10 * time.Second, want: "held", attempt: 2},
	} {
		t.Run(name, func(t *testing.T) {
			q, clock := open(t)
			if c.lease > 0 {
				mustPush(t, q, "held", 0)
				mustTake(t, q, 1, c.lease)
			}
			if c.delay > 0 {
				mustPush(t, q, "due", c.delay)
			}
			got := receive(context.Background(), t, q)
			if c.meanwhile != nil {
				mustAll(t, c.meanwhile(q))
			}
			clock.Advance(10*time.Second - 1)
			if len(got) > 0 {
				t.Fatal("handed out too early")
			}
			clock.Advance(1)
			if d := mustGet(t, got, c.want); d.Attempt != c.attempt {
				t.Errorf("attempt %d, want %d", d.Attempt, c.attempt)
			}
		})
	}
}

// A looked context calls look where a call looks whether the context has ended.
type looked struct {
	context.Context //nolint:containedctx // it is one
	look            func()
}

func (c looked) Err() error {
	c.look()
	return nil
}

// A Receive looks whether its handle is open and takes messages in one step: it takes none that is
// pushed after Close. The suite closes handles of calls that wait.
func TestClosedHandleTakesNothing(t *testing.T) {
	b := New()
	closing, open := openOn(t, b, nil), openOn(t, b, nil)
	got := receive(looked{context.Background(), func() {
		if closing.mu.TryLock() { // else nothing comes between the two
			closing.mu.Unlock()
			_ = closing.Close()
			_ = push(open, "a", 0)
		}
	}}, t, closing)
	must(t, closing.Close())
	if r := mustReturn(t, got); len(r.ds) > 0 || !errors.Is(r.err, backend.ErrClosed) {
		t.Errorf("got %v", r)
	}
}

func TestLongestSleeperWakesFirst(t *testing.T) {
	q, clock := open(t)
	first := receive(context.Background(), t, q)
	second := receive(context.Background(), t, q)
	mustPush(t, q, "a", time.Hour)
	clock.Advance(time.Hour)
	mustGet(t, first, "a")
	mustPush(t, q, "b", 0)
	mustGet(t, second, "b")
}

// A sleeper whose context ends leaves neither itself nor the timer behind.
func TestLeavingStopsTheTimer(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	got := receive(ctx, t, q)
	must(t, clock.BlockUntilContext(ctx, 1))
	cancel()
	if r := mustReturn(t, got); r.err != context.Canceled || r.ds != nil {
		t.Errorf("got %v", r)
	}
	mustAll(t, q.Cancel(context.Background(), []string{"a"}))
	mustBeEmpty(t, q.store)
}
