package peers

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkCancelPeers measures the cost of cancelling a message among 10,000, due in an hour, by
// one caller: us/cancel, the median of the rounds, and least-us/cancel. The slower sides have fewer
// messages. For river a cancelled job is a row that stays for a day.
func BenchmarkCancelPeers(b *testing.B) {
	describe(b)
	took := make(map[string][]float64)
	cs := takePart(b, cancels)
	pending, cancelled := load.UnlessShort(10_000, 500), load.UnlessShort(500, 50)
	for range load.UnlessShort(3, 1) {
		for _, c := range cs {
			load.Turn(func() {
				d := c.cancelSome(b, c.upTo(pending), cancelled)
				took[c.name] = append(took[c.name], load.Micros(d))
			})
			c.clear(b)
		}
	}
	for _, c := range cs {
		line(b, c.name, func(b *testing.B) {
			b.ReportMetric(load.Quantile(took[c.name], 0.5), "us/cancel")
			b.ReportMetric(load.Quantile(took[c.name], 0), "least-us/cancel")
		})
	}
}

// cancelSome returns how long each of n cancellations took.
func (c *contestant) cancelSome(b *testing.B, pending, n int) time.Duration {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		return f.cancelSome(b, pending, n)
	}
	todo := c.pushAllToCancel(b, pending)
	rand.New(rand.NewPCG(5, 6)).Shuffle(pending, func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	start := time.Now()
	for _, cancel := range todo[:n] {
		load.Must(b, cancel(context.Background()))
	}
	took := time.Since(start) / time.Duration(n)
	c.mustHaveLeft(b, pending-n)
	return took
}

func (c *contestant) pushAllToCancel(b *testing.B, n int) []func(context.Context) error {
	b.Helper()
	s := c.system.(canceller)
	m := delayq.Message{Body: load.Body, Due: time.Now().Add(time.Hour)}
	all := make([]func(context.Context) error, n)
	load.Calls(b, n, 64, func(_, i int) (err error) {
		all[i], err = s.pushToCancel(context.Background(), m)
		return err
	})
	return all
}
