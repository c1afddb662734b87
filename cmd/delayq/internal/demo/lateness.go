package demo

import (
	"math"
	"slices"
	"time"
)

// lateness is how late messages came.
type lateness []time.Duration

// quantiles are nil when nothing was recorded.
func (l lateness) quantiles() (p50, p99, worst *time.Duration) {
	if len(l) == 0 {
		return nil, nil, nil
	}
	slices.Sort(l)
	at := func(part float64) *time.Duration { return &l[int(math.Ceil(part*float64(len(l))))-1] }
	return at(0.5), at(0.99), at(1)
}
