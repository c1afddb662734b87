package peers

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
	all := make(map[string]outcome)
	for range unlessShort(2, 1) {
		for _, c := range cs {
			turn(func() { all[c.name] = all[c.name].and(c.lateness(b)) })
		}
	}
	for _, c := range cs {
		line(b, c.name, func(b *testing.B) {
			all[c.name].report(b)
			reportLateness(b, all[c.name].late)
			raw.Lateness(b, "", all[c.name].late)
		})
	}
}

const (
	lateInterval = 500 * time.Microsecond

	// latePushers are so many because a push that is confirmed may take many intervals.
	latePushers = 64
)

func leastDelay() time.Duration { return unlessShort(time.Second, time.Second/10) }

// plan returns the due times of one round: message i is to be pushed after i intervals.
func plan(start time.Time) *tally {
	r := rand.New(rand.NewPCG(1, 2))
	due := make([]time.Time, unlessShort(5000, 200))
	for i := range due {
		delay := leastDelay() + time.Duration(r.Int64N(int64(2*leastDelay())))
		due[i] = start.Add(time.Duration(i)*lateInterval + delay)
	}
	return newTally(due)
}

func (c *contestant) lateness(b *testing.B) outcome {
	b.Helper()
	if f, ok := c.system.(foreigner); ok {
		return f.lateMany(b)
	}
	t, stop := c.pushAtPace(b)
	t.wait()
	o := t.outcome()
	c.drained(b, o.lost)
	stop()
	c.keep(b, o)
	return o
}

// pushAtPace begins when the workers are in.
func (c *contestant) pushAtPace(b *testing.B) (t *tally, stop func()) {
	b.Helper()
	var late *tally // the workers get nothing before it is set
	stop = c.consume(b, func(body []byte) { late.arrived(body) })
	start := time.Now()
	late = plan(start)
	fromMany(latePushers, func(p int) {
		for i := p; i < len(late.due) && !b.Failed(); i += latePushers {
			// The pace is the load.
			time.Sleep(time.Until(start.Add(time.Duration(i) * lateInterval))) // the pace of the load
			if err := c.push(context.Background(), late.message(i)); err != nil {
				b.Error(err)
			}
		}
	})
	return late, stop
}

func reportLateness(b *testing.B, late []time.Duration) {
	if len(late) == 0 {
		return
	}
	late = slices.Sorted(slices.Values(late))
	report := func(d time.Duration, name string) {
		b.ReportMetric(float64(d)/float64(time.Millisecond), "late-"+name+"-ms")
	}
	report(late[0], "min")
	report(quantile(late, 0.5), "p50")
	report(quantile(late, 0.99), "p99")
	report(late[len(late)-1], "max")
}
