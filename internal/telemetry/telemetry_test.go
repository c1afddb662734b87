package telemetry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/delayq/delayq/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errSettled = errors.New("settled")

// use calls every method as a queue does: a push, a delivery, a handler that fails.
func use(ctx context.Context, r *Recorder, now time.Time) {
	defer r.AddWorkers(2)()
	ms := []backend.Message{{Headers: map[string]string{"k": "v"}}}
	ctx, push := r.StartPush(ctx, ms)
	push.End(ctx, ms, errSettled)
	start := r.Start()
	r.Operation(ctx, Extend, start, nil)
	r.Settled(ctx, Dead, 3, start, nil)
	r.Delivered(ctx, Receive, Delivery{Attempt: 1}, Delivery{Attempt: 2})
	ctx, p := r.StartProcess(ctx, Delivery{Headers: ms[0].Headers}, now)
	p.Returned(ctx, FailedPanic, errSettled)
	p.End(OutcomeRetried, nil)
	r.Failed(ctx, FailedRenew, 4)
}

func TestNilRecorderDoesNothing(t *testing.T) {
	t.Parallel()
	r, err := New(Config{Queue: "orders", Backend: "memory", Clock: clockwork.NewFakeClock()})
	if r != nil || err != nil {
		t.Fatalf("New without providers returns %v, %v", r, err)
	}
	use(t.Context(), r, time.Now())
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if start := r.Start(); !start.IsZero() {
		t.Errorf("Start returns %v", start)
	}
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	r := &Recorder{errorTypes: errorTypes(errSettled)}
	for want, err := range map[string]error{
		"settled":    fmt.Errorf("ack: %w", errSettled),
		"lease_lost": errors.Join(errSettled, backend.ErrLeaseLost), // of a batch
		"canceled":   errors.Join(backend.ErrOutcomeUnknown, context.Canceled),
		"_OTHER":     errors.New("something else"),
	} {
		if got := r.errorType(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func TestLongestHandler(t *testing.T) {
	t.Parallel()
	var r running
	now := time.Now()
	first, second := r.start(now), r.start(now.Add(time.Minute))
	for i, tt := range []struct {
		end  uint64
		want time.Duration
	}{{0, time.Hour}, {first, time.Hour - time.Minute}, {second, 0}} {
		r.end(tt.end)
		if d := r.longest(now.Add(time.Hour)); d != tt.want {
			t.Errorf("step %d: %v, want %v", i, d, tt.want)
		}
	}
}
