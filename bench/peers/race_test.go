package peers

import (
	"path"
	"slices"
	"testing"

	"github.com/delayq/delayq/bench/internal/load"
)

// report prints a line for every side: the median, the least and the most of its rates, its other
// metrics, and its share of the rate of each rival, which are sides too.
func report(b *testing.B, r *load.Race, more func(b *testing.B, side string), rivals ...string) {
	for _, side := range r.Sides {
		line(b, side, func(b *testing.B) {
			b.ReportMetric(r.Median(side), "msgs/s")
			b.ReportMetric(slices.Min(r.Rates[side]), "least-msgs/s")
			b.ReportMetric(slices.Max(r.Rates[side]), "most-msgs/s")
			more(b, side)
			for _, rival := range rivals {
				if !slices.Contains(rivals, side) && r.Rates[rival] != nil {
					b.ReportMetric(share(r.Rates[side], r.Rates[rival]), "/"+path.Base(rival))
				}
			}
		})
	}
}

func nothing(*testing.B, string) {}

// line reports on a side in a line of its own, from figures measured before.
func line(b *testing.B, side string, say func(*testing.B)) {
	b.Run(side, func(b *testing.B) {
		load.OnePass(b)
		say(b)
	})
}

// share is the median of the rounds' shares: the turns of one round are near to one another.
func share(side, rival []float64) float64 {
	shares := make([]float64, len(side))
	for round, rate := range side {
		shares[round] = rate / rival[round]
	}
	return load.Quantile(shares, 0.5)
}
