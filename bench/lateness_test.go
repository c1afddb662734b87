package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	rawdata "github.com/delayq/delayq/bench/internal/raw"
)

// BenchmarkLateness measures how long after its due time a message reaches its handler: 2,000
// messages a second with delays of 1 to 3 s, 32 workers, 10,000 messages in all. Beside
// it stands the same load on bare time.AfterFunc, the least that a Go program can do.
//
//	late-p50-ms late-p99-ms late-max-ms  of the queue
//	bare-late-p50-ms …                   of time.AfterFunc
//	trip-p99-ms                          a PING, where the store is a Redis server
//	early/op                             always 0, or the benchmark fails
//
// Goals for late-p99-ms: 2 on memory; on zsetpoll and redisson 3, or three times bare-late-p99-ms
// and one round trip where that is more; on keyspace its sweep, a second.
//
// Lateness counts from the time that the plan says, not from a push that may itself be late.
// The two take turns rather than run at once: the timers of one would wake the process for
// the other, which a program that has only one of them does not enjoy.
func BenchmarkLateness(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		q := t.queue(b)
		var queue, bare []time.Duration
		for range load.UnlessShort(2, 1) {
			bare = append(bare, lateBare(b)...)
			queue = append(queue, lateQueue(b, q)...)
		}
		for side, late := range map[string][]time.Duration{"": queue, "bare": bare} {
			load.ReportQuantiles(b, strings.TrimPrefix(side+"-late-", "-"), late)
			rawdata.Lateness(b, side, late)
		}
		if t.onRedis != nil {
			b.ReportMetric(load.Millis(tripTime(b)), "trip-p99-ms")
		}
		b.ReportMetric(0, "early/op")
		load.OnePass(b)
	})
}

func lateBare(b *testing.B) []time.Duration {
	start := time.Now()
	t := load.Plan(start)
	load.Pace(b, start, len(t.Due), 1, func(i int) error {
		m := t.Message(i)
		time.AfterFunc(time.Until(m.Due), func() { t.Arrived(m.Body) })
		return nil
	})
	t.Wait()
	return t.Outcome().Late
}

func lateQueue(b *testing.B, q delayq.Queue) []time.Duration {
	start := time.Now()
	t := load.Plan(start)
	wait := consume(b, q, t)
	load.Pace(b, start, len(t.Due), load.Pushers, func(i int) error {
		m := t.Message(i)
		_, err := q.Push(context.Background(), m.Body, delayq.At(m.Due))
		return err
	})
	wait()
	return t.Outcome().Late
}
