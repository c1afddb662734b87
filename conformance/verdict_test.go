package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/conformance/broken"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

// outcome judges by one check.
func outcome(ctx context.Context, t *testing.T, h conformance.Harness, check string) (conformance.Outcome, conformance.Verdict) {
	t.Helper()
	vs, err := conformance.Judge(ctx, h, check)
	if err != nil || len(vs) != 1 {
		t.Fatalf("%d verdicts, %v", len(vs), err)
	}
	return vs[0].Outcome(), vs[0]
}

func wantOutcome(t *testing.T, h conformance.Harness, check string, want conformance.Outcome) {
	t.Helper()
	if got, v := outcome(t.Context(), t, h, check); got != want {
		t.Errorf("check %s: got %v, want %v: %v %s", check, got, want, v.Err, v.Skipped)
	}
}

// wantBrokenInRealTime wants a check to see messages come early. One that receives after the due time,
// as on a busy machine, cannot see that, and is given longer ticks.
func wantBrokenInRealTime(t *testing.T, h conformance.Harness, check string) {
	t.Helper()
	for range 2 {
		if got, _ := outcome(t.Context(), t, h, check); got == conformance.Broken {
			return
		}
		h.Tick *= 4
	}
	wantOutcome(t, h, check, conformance.Broken)
}

func fault(t *testing.T, name string) broken.Fault {
	t.Helper()
	for _, f := range broken.Faults() {
		if strings.Contains(f.Name, name) {
			return f
		}
	}
	t.Fatalf("no fault has %q in its name", name)
	return broken.Fault{}
}

// TestOutcomes has a backend that keeps a rule, one that breaks it, one that does not claim its
// feature, and one that cannot be opened.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	good := conformance.Harness{New: newMemory, Virtual: true}
	wantOutcome(t, good, "never-early", conformance.Kept)
	for _, f := range []broken.Fault{fault(t, "hands out 1 ms early"), fault(t, "rounds due times down to the millisecond"), fault(t, "loses a message on nack")} {
		wantOutcome(t, judging(f), f.Rule, conformance.Broken)
	}
	numbered := conformance.Harness{New: newNumbered, Attach: attachNumbered, Virtual: true}
	wantOutcome(t, numbered, "odd-ids", conformance.NotOffered)
	none := conformance.Harness{New: func(context.Context) (backend.Backend, func(), error) { return nil, nil, errors.New("down") }}
	wantOutcome(t, none, "never-early", conformance.NotJudged)
}

// TestStoppedCheckProvesNothing ends the context of a check that waits for a lost message.
func TestStoppedCheckProvesNothing(t *testing.T) {
	t.Parallel()
	h := judging(fault(t, "loses a message on nack"))
	rule := fault(t, "loses a message on nack").Rule
	wantOutcome(t, h, rule, conformance.Broken)
	ctx, cancel := context.WithCancel(t.Context())
	open := h.New
	h.New = func(ctx context.Context) (backend.Backend, func(), error) {
		b, cleanup, err := open(ctx)
		cancel() // the backend is there, and nothing after that counts
		return b, cleanup, err
	}
	if got, v := outcome(ctx, t, h, rule); got != conformance.NotJudged {
		t.Errorf("got %v: %v", got, v.Err)
	}
}

// A witness notes the names of queues that are opened.
type witness struct {
	backend.Backend
	mu   *sync.Mutex
	seen map[string]bool
}

func (w witness) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	w.mu.Lock()
	w.seen[name] = true
	w.mu.Unlock()
	return w.Backend.Open(ctx, name, o)
}

// TestPrefix runs all checks, which must open no queues without the prefix.
func TestPrefix(t *testing.T) {
	testenv.In(t, testenv.All)
	w := witness{mu: new(sync.Mutex), seen: make(map[string]bool)}
	h := conformance.Harness{Prefix: "mine-", Virtual: true, Parallel: true, New: func(context.Context) (backend.Backend, func(), error) {
		return witness{memory.New(), w.mu, w.seen}, nil, nil
	}}
	t.Run("checks", func(t *testing.T) { conformance.Run(t, h) })
	for name := range w.seen {
		if !strings.HasPrefix(strings.ToLower(name), "mine-") {
			t.Errorf("queue %q was opened", name)
		}
	}
	if len(w.seen) < len(conformance.Checks()) {
		t.Errorf("%d queues for %d checks", len(w.seen), len(conformance.Checks()))
	}
}

// fast is a store whose clock is ahead of this machine's.
type fast struct {
	backend.Backend
	by time.Duration
}

func (f fast) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := f.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return fastQueue{q, f.by}, nil
}

type fastQueue struct {
	backend.Queue
	by time.Duration
}

func (q fastQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	earlier := make([]backend.Message, len(ms))
	for i, m := range ms {
		if !m.Due.IsZero() {
			m.Due = m.Due.Add(-q.by)
		}
		earlier[i] = m
	}
	return q.Queue.Schedule(ctx, earlier)
}

// TestSkew has a store whose clock is ahead: that is allowed for due times, and not for delays.
func TestSkew(t *testing.T) {
	t.Parallel()
	const by = time.Second
	h := conformance.Harness{Tick: 300 * time.Millisecond, Quiet: 10 * time.Millisecond, New: func(context.Context) (backend.Backend, func(), error) {
		return fast{memory.New(), by}, nil, nil
	}}
	wantBrokenInRealTime(t, h, "due-at")
	h.Skew = by
	wantOutcome(t, h, "due-at", conformance.Kept)
	early := judging(fault(t, "hands out 1 ms early"))
	early.Skew = by
	wantOutcome(t, early, "never-early", conformance.Broken)
}

// TestEarlyInRealTime halves the delays. Only a Receive before the due time shows that.
func TestEarlyInRealTime(t *testing.T) {
	t.Parallel()
	h := conformance.Harness{Tick: 400 * time.Millisecond, Quiet: 10 * time.Millisecond, New: func(context.Context) (backend.Backend, func(), error) {
		return hasty{memory.New()}, nil, nil
	}}
	for _, check := range []string{"never-early", "never-early-under-load", "nack-delay"} {
		wantBrokenInRealTime(t, h, check)
	}
}

// TestShownPauseInRealTime has a backend that shows a pause with a wrong end.
func TestShownPauseInRealTime(t *testing.T) {
	t.Parallel()
	late := fault(t, "shows a pause that ends a second later")
	h := conformance.Harness{Tick: 60 * time.Millisecond, Quiet: 10 * time.Millisecond, New: func(context.Context) (backend.Backend, func(), error) {
		return late.Wrap(memory.New()), nil, nil
	}}
	wantOutcome(t, h, late.Rule, conformance.Broken)
}

type hasty struct{ backend.Backend }

func (b hasty) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return hastyQueue{q}, nil
}

type hastyQueue struct{ backend.Queue }

func (q hastyQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	sooner := slices.Clone(ms)
	for i := range sooner {
		sooner[i].Delay /= 2
	}
	return q.Queue.Schedule(ctx, sooner)
}

func (q hastyQueue) Nack(ctx context.Context, rs []backend.Return) []error {
	sooner := slices.Clone(rs)
	for i := range sooner {
		sooner[i].Delay /= 2
	}
	return q.Queue.Nack(ctx, sooner)
}
