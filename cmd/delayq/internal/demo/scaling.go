package demo

import (
	"math"
	"time"
)

// stretched and shrunk scale a duration without running over the end of time. Shrinking divides, so
// that 30 minutes at speed 600 are 3 seconds to the nanosecond.
func stretched(d time.Duration, factor float64) time.Duration { return duration(float64(d) * factor) }
func shrunk(d time.Duration, factor float64) time.Duration    { return duration(float64(d) / factor) }

func duration(f float64) time.Duration {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return time.Duration(f)
}
