package raw

import (
	"math"
	"slices"
	"time"
)

// A Timeline counts the messages that arrived in each slice of time.
type Timeline struct {
	Messages int   `json:"messages"`
	Start    int64 `json:"start"` // of the first slice, in ns after the due time, negative where messages were early
	Slice    int64 `json:"slice"` // ns
	Counts   []int `json:"counts"`
}

const mostSlices = 200

func slice(afterDue []time.Duration) *Timeline {
	t := &Timeline{Messages: len(afterDue)}
	if len(afterDue) == 0 {
		return t
	}
	first, last := min(0, slices.Min(afterDue)), slices.Max(afterDue)
	width := round(last - first)
	from, to := floor(first, width), floor(last, width)
	t.Start, t.Slice = from*int64(width), int64(width)
	t.Counts = make([]int, to-from+1)
	for _, d := range afterDue {
		t.Counts[floor(d, width)-from]++
	}
	return t
}

// round returns a slice of 1, 2 or 5 times a power of ten, no less than a tenth of a millisecond,
// of which few enough make up the span.
func round(span time.Duration) time.Duration {
	for unit := 100 * time.Microsecond; ; unit *= 10 {
		for _, width := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if span/width < mostSlices-1 {
				return width
			}
		}
	}
}

func floor(d, width time.Duration) int64 { return int64(math.Floor(float64(d) / float64(width))) }
