package backend_test

import (
	"math"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestLateness(t *testing.T) {
	t.Parallel()
	var h backend.LatenessHistogram
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("half of nothing is within %v", got)
	}
	for _, late := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, 2 * time.Hour} {
		h.Add(late)
	}
	for share, want := range map[float64]time.Duration{0.5: time.Millisecond, 0.6: time.Millisecond, 0.61: 2 * time.Millisecond, 0.8: 2 * time.Millisecond, 0.9: math.MaxInt64} {
		if got := h.Quantile(share); got != want {
			t.Errorf("%v of %v is within %v, want %v", share, h, got, want)
		}
	}
	backend.LatenessBounds()[0] = time.Hour // a copy
	later := h
	later.Add(3 * time.Second)
	if got := later.Since(h).Quantile(1); later.Since(h) == later || got != 5*time.Second {
		t.Errorf("%v since %v is %v", later, h, later.Since(h))
	}
	if got := h.Since(later); got != h {
		t.Errorf("%v after a new beginning is %v", h, got)
	}
	if got := h.Quantile(0.5); got != time.Millisecond {
		t.Errorf("a bound has become %v", got)
	}
}
