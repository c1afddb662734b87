package peers

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkLatenessPeers measures how long after its due time a message reaches its handler, in ms: 2,000 messages a second with
// delays of 1 to 3 s, from eight goroutines, 32 workers, 10,000 messages a round. Lateness counts from the time that the plan says.
//
//	early-%                      of the messages; 0 for delayq, or the benchmark fails
//	min-ms p50-ms p99-ms max-ms  negative for early ones
//
// Goal for p99-ms of zsetpoll: 3, or three times what bare timers have where that is more (BenchmarkLateness in ./bench).
func BenchmarkLatenessPeers(b *testing.B) {
	sayRedis(b)
	cs := contest(b, inTime)
	late := make(map[string][]time.Duration)
	for range unlessShort(3, 1) {
		for _, c := range cs {
			turn(func() { late[c.name] = append(late[c.name], c.lateness(b)...) })
		}
	}
	for _, c := range cs {
		line(b, c.name, func(b *testing.B) { reportLateness(b, late[c.name]) })
	}
}

const lateInterval = 500 * time.Microsecond

// plan returns the due times of one round: message i is to be pushed after i intervals.
func plan(start time.Time) *tally {
	r := rand.New(rand.NewPCG(1, 2))
	due := make([]time.Time, unlessShort(10_000, 200))
	least := unlessShort(time.Second, time.Second/10)
	for i := range due {
		delay := least + time.Duration(r.Int64N(int64(2*least)))
		due[i] = start.Add(time.Duration(i)*lateInterval + delay)
	}
	return newTally(due)
}

func (c contestant) lateness(b *testing.B) []time.Duration {
	b.Helper()
	const pushers = 8
	start := time.Now()
	t := plan(start)
	stop := c.consume(b, t.arrived)
	fromMany(pushers, func(p int) {
		for i := p; i < len(t.due) && !b.Failed(); i += pushers {
			// The pace is the load.
			time.Sleep(time.Until(start.Add(time.Duration(i) * lateInterval)))
			if err := c.push(context.Background(), t.message(i)); err != nil {
				b.Error(err)
			}
		}
	})
	t.wait(b)
	c.drained(b)
	stop()
	c.keep(b, t)
	return t.late
}

func reportLateness(b *testing.B, late []time.Duration) {
	slices.Sort(late)
	early, _ := slices.BinarySearch(late, 0)
	b.ReportMetric(100*float64(early)/float64(len(late)), "early-%")
	report := func(d time.Duration, name string) { b.ReportMetric(float64(d)/float64(time.Millisecond), name+"-ms") }
	report(late[0], "min")
	report(quantile(late, 0.5), "p50")
	report(quantile(late, 0.99), "p99")
	report(late[len(late)-1], "max")
}
