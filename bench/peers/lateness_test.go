package peers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/bench/internal/raw"
)

// BenchmarkLatenessPeers measures how long after its due time a message reaches its handler: 2,000
// messages a second with delays of 1 to 3 s, from 64 goroutines, 32 workers, 5,000 messages a
// round. Lateness counts from the time that the plan says, over all messages of all rounds.
//
//	early/op                                         the share of the messages that came early; 0
//	                                                 for delayq, or the benchmark fails
//	late-min-ms late-p50-ms late-p99-ms late-max-ms  negative for early ones
//	lost, twice                                      messages that did not come, and that came
//	                                                 again
//
// Goal for late-p99-ms of zsetpoll: 3, or three times that of afterfunc and a round trip where that
// is more (BenchmarkLateness in ./bench).
func BenchmarkLatenessPeers(b *testing.B) {
	describe(b)
	cs := takePart(b, delays)
	all := make(map[string]load.Outcome)
	for range load.UnlessShort(2, 1) {
		for _, c := range cs {
			load.Turn(func() { all[c.name] = all[c.name].And(c.lateness(b)) })
		}
	}
	for _, c := range cs {
		line(b, c.name, func(b *testing.B) {
			all[c.name].Report(b)
			reportLateness(b, all[c.name].Late)
			raw.Lateness(b, "", all[c.name].Late)
		})
	}
}

func (c *contestant) lateness(b *testing.B) load.Outcome {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		return f.lateMany(b)
	}
	t, stop := c.pushAtPace(b)
	t.Wait()
	o := t.Outcome()
	c.drained(b, o.Lost)
	stop()
	c.keep(b, o)
	return o
}

// pushAtPace begins when the workers are in.
func (c *contestant) pushAtPace(b *testing.B) (t *load.Tally, stop func()) {
	b.Helper()
	var late *load.Tally // the workers get nothing before it is set
	stop = c.consume(b, func(body []byte) { late.Arrived(body) })
	start := time.Now()
	late = load.Plan(start)
	load.Pace(b, start, len(late.Due), load.Pushers, func(i int) error {
		return c.push(context.Background(), late.Message(i))
	})
	return late, stop
}

func reportLateness(b *testing.B, late []time.Duration) {
	if len(late) == 0 {
		return
	}
	b.ReportMetric(load.Millis(slices.Min(late)), "late-min-ms")
	load.ReportQuantiles(b, "late-", late)
}
