package bench

import (
	"context"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/delayq/delayq"
)

// BenchmarkLateness measures how long after its due time a message reaches its handler: 2,000
// messages a second with delays of 1 to 3 s, 32 workers, 10,000 messages in all. Beside
// it stands the same load on bare time.AfterFunc, the least that a Go program can do.
//
//	p50-us p99-us max-us                 of the queue
//	bare-p50-us bare-p99-us bare-max-us  of time.AfterFunc
//	trip-p99-us                          a PING, where the store is a Redis server
//	early                                always 0, or the benchmark fails
//
// Goals for p99-us: 2,000 on memory; on zsetpoll 3,000, or three times bare-p99-us and one round
// trip where that is more; on keyspace its sweep, a second.
//
// Lateness counts from the time that the plan says, not from a push that may itself be late.
// The two take turns rather than run at once: the timers of one would wake the process for
// the other, which a program that has only one of them does not enjoy.
func BenchmarkLateness(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		q := t.queue(b)
		queue, bare := newHistogram(), newHistogram()
		for range unlessShort(2, 1) {
			record(bare, lateBare(b))
			record(queue, lateQueue(b, q))
		}
		reportLateness(b, "", queue)
		reportLateness(b, "bare-", bare)
		if t.onRedis != nil {
			b.ReportMetric(micros(tripTime(b)), "trip-p99-us")
		}
		b.ReportMetric(0, "early")
		b.ReportMetric(0, "ns/op") // means nothing here
	})
}

const lateInterval = 500 * time.Microsecond

// plan returns the due times of one turn: message i is to be pushed after i intervals.
func plan(start time.Time) *tally {
	r := newRand()
	due := make([]time.Time, unlessShort(5000, 200))
	least := unlessShort(time.Second, time.Second/10)
	for i := range due {
		delay := least + time.Duration(r.Int64N(int64(2*least)))
		due[i] = start.Add(time.Duration(i)*lateInterval + delay)
	}
	return newTally(due)
}

// atPace calls push for each message when its turn has come.
func atPace(start time.Time, n int, push func(i int)) {
	for i := range n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * lateInterval)))
		push(i)
	}
}

func lateBare(b *testing.B) []time.Duration {
	start := time.Now()
	load := plan(start)
	atPace(start, len(load.due), func(i int) {
		time.AfterFunc(time.Until(load.due[i]), func() { load.arrived(i) })
	})
	load.wait(b)
	return load.late
}

func lateQueue(b *testing.B, q delayq.Queue) []time.Duration {
	start := time.Now()
	load := plan(start)
	wait := consume(b, q, load)
	atPace(start, len(load.due), func(i int) {
		m := load.message(i)
		_, err := q.Push(context.Background(), m.Body, delayq.At(m.Due))
		must(b, err)
	})
	wait()
	return load.late
}

// newHistogram tells apart nanoseconds to a minute, to three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }

func record(h *hdrhistogram.Histogram, late []time.Duration) {
	for _, d := range late {
		_ = h.RecordValue(int64(min(max(d, 0), time.Minute)))
	}
}

func reportLateness(b *testing.B, prefix string, h *hdrhistogram.Histogram) {
	report := func(ns int64, name string) { b.ReportMetric(float64(ns)/1e3, prefix+name+"-us") }
	report(h.ValueAtQuantile(50), "p50")
	report(h.ValueAtQuantile(99), "p99")
	report(h.Max(), "max")
}
