package demo

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// lateness counts how late messages came, in as little memory for a hundred thousand as for ten.
type lateness struct {
	histogram *hdrhistogram.Histogram // of microseconds
	max       time.Duration
	n         int
}

const (
	worstKept = 24 * time.Hour
	digits    = 3
)

func newLateness() *lateness {
	return &lateness{histogram: hdrhistogram.New(1, worstKept.Microseconds(), digits)}
}

func (l *lateness) record(d time.Duration) {
	l.n++
	l.max = max(l.max, d)
	// Out of range it would be an error; the cut value is right up to the maximum, which is kept apart.
	_ = l.histogram.RecordValue(min(d, worstKept).Microseconds())
}

// quantiles are nil when nothing was recorded.
func (l *lateness) quantiles() (p50, p99, worst *time.Duration) {
	if l.n == 0 {
		return nil, nil, nil
	}
	return l.quantile(50), l.quantile(99), &l.max
}

func (l *lateness) quantile(q float64) *time.Duration {
	d := time.Duration(l.histogram.ValueAtQuantile(q)) * time.Microsecond
	d = min(d, l.max) // the histogram returns the upper end of a bucket
	return &d
}
