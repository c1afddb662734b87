package delayq_test

import (
	"math"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

func TestBackoffStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, b := range []delayq.Backoff{
		delayq.Exponential(time.Second, time.Hour),
		{Base: 1, Max: 1, Factor: 1},
		{Base: time.Second, Max: backend.MaxDelay, Factor: 1e300, Jitter: 1},
		{Base: backend.MaxDelay, Max: backend.MaxDelay, Factor: math.MaxFloat64},
		{Base: time.Minute, Max: 2 * time.Minute, Factor: 1.01, Jitter: 0.1},
	} {
		full := float64(b.Base)
		for attempt := 1; attempt <= 2000; attempt++ {
			high := time.Duration(min(full, float64(b.Max)))
			low := time.Duration(float64(high) * (1 - b.Jitter))
			// Powers and repeated products differ in their last digits.
			slack := high/1e9 + 1
			if d := b.Delay(attempt, nil); d < low-slack || d > high+slack || d > b.Max {
				t.Fatalf("%+v after attempt %d: %v, want %v to %v", b, attempt, d, low, high)
			}
			full *= b.Factor
		}
		if d := b.Delay(math.MaxInt, nil); d < 0 || d > b.Max {
			t.Errorf("%+v after attempts without end: %v", b, d)
		}
	}
}

func TestJitterSpreads(t *testing.T) {
	t.Parallel()
	b := delayq.Exponential(time.Hour, time.Hour)
	seen := make(map[time.Duration]bool)
	for range 100 {
		seen[b.Delay(1, nil)] = true
	}
	if len(seen) < 90 {
		t.Errorf("%d different delays of 100", len(seen))
	}
}
