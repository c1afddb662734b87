package peers

import (
	"cmp"
	"path"
	"runtime"
	"slices"
	"testing"
	"time"
)

// A race collects the rates of several sides, in messages a second, one a round.
type race struct {
	names []string
	rates map[string][]float64
}

func newRace() *race { return &race{rates: make(map[string][]float64)} }

// run lets a side do n messages.
func (r *race) run(name string, n int, do func()) {
	turn(func() {
		start := time.Now()
		do()
		r.note(name, float64(n)/time.Since(start).Seconds())
	})
}

// turn makes a side pay for its own garbage only.
func turn(do func()) {
	runtime.GC()
	do()
}

func (r *race) note(name string, rate float64) {
	if r.rates[name] == nil {
		r.names = append(r.names, name)
	}
	r.rates[name] = append(r.rates[name], rate)
}

// report prints a line for every side: the median, the least and the most of its rates, its other
// metrics, and its share of the rate of each rival, which are sides too.
func (r *race) report(b *testing.B, more func(b *testing.B, side string), rivals ...string) {
	for _, side := range r.names {
		line(b, side, func(b *testing.B) {
			b.ReportMetric(r.median(side), "msgs/s")
			b.ReportMetric(slices.Min(r.rates[side]), "least-msgs/s")
			b.ReportMetric(slices.Max(r.rates[side]), "most-msgs/s")
			more(b, side)
			r.reportShares(b, side, rivals)
		})
	}
}

func nothing(*testing.B, string) {}

// line reports on a side in a line of its own, from figures measured before.
func line(b *testing.B, side string, say func(*testing.B)) {
	b.Run(side, func(b *testing.B) {
		b.ReportMetric(0, "ns/op") // means nothing here
		say(b)
	})
}

func (r *race) reportShares(b *testing.B, side string, rivals []string) {
	for _, rival := range rivals {
		if !slices.Contains(rivals, side) && r.rates[rival] != nil {
			b.ReportMetric(r.share(side, rival), "/"+path.Base(rival))
		}
	}
}

// share is the median of the rounds' shares: the turns of one round are near to one another.
func (r *race) share(side, rival string) float64 {
	shares := make([]float64, len(r.rates[side]))
	for round, rate := range r.rates[side] {
		shares[round] = rate / r.rates[rival][round]
	}
	return quantile(shares, 0.5)
}

func (r *race) median(side string) float64 { return quantile(r.rates[side], 0.5) }

// quantile is the least value that this share of all does not exceed.
func quantile[T cmp.Ordered](values []T, share float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
