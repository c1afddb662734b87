package load

import (
	"cmp"
	"runtime"
	"slices"
	"testing"
	"time"
)

// A Race collects the rates of several sides that take turns, in messages a second, one a round:
// a slow moment of the machine strikes all of them.
type Race struct {
	Sides []string
	Rates map[string][]float64 // by side
}

// NewRace returns a race without sides.
func NewRace() *Race { return &Race{Rates: make(map[string][]float64)} }

// Turn makes a side pay for its own garbage only.
func Turn(do func()) {
	runtime.GC()
	do()
}

// Run lets a side do n messages.
func (r *Race) Run(side string, n int, do func()) {
	Turn(func() {
		start := time.Now()
		do()
		r.Note(side, float64(n)/time.Since(start).Seconds())
	})
}

// Note records a side's rate in a round.
func (r *Race) Note(side string, rate float64) {
	if r.Rates[side] == nil {
		r.Sides = append(r.Sides, side)
	}
	r.Rates[side] = append(r.Rates[side], rate)
}

// Median returns the median of a side's rates.
func (r *Race) Median(side string) float64 { return Quantile(r.Rates[side], 0.5) }

// Quantile is the least value that this share of all does not exceed.
func Quantile[T cmp.Ordered](values []T, share float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// Millis and Micros convert a duration to the unit of a metric.
func Millis(d time.Duration) float64 { return float64(d) / 1e6 }

// Micros is Millis in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / 1e3 }

// ReportQuantiles reports the median, the 99th percentile and the maximum, in milliseconds.
func ReportQuantiles(b *testing.B, prefix string, ds []time.Duration) {
	b.ReportMetric(Millis(Quantile(ds, 0.5)), prefix+"p50-ms")
	b.ReportMetric(Millis(Quantile(ds, 0.99)), prefix+"p99-ms")
	b.ReportMetric(Millis(slices.Max(ds)), prefix+"max-ms")
}

// OnePass tells that b.N means nothing, and that the metrics tell all.
func OnePass(b *testing.B) { b.ReportMetric(0, "ns/op") }
