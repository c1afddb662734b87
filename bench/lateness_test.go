package bench

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/delayq/delayq"
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
		for range unlessShort(2, 1) {
			bare = append(bare, lateBare(b)...)
			queue = append(queue, lateQueue(b, q)...)
		}
		noteLateness(b, "", queue)
		noteLateness(b, "bare-", bare)
		if t.onRedis != nil {
			b.ReportMetric(millis(tripTime(b)), "trip-p99-ms")
		}
		b.ReportMetric(0, "early/op")
		b.ReportMetric(0, "ns/op") // means nothing here
	})
}

// noteLateness reports on a side, and keeps its distribution for the report.
func noteLateness(b *testing.B, prefix string, late []time.Duration) {
	h := newHistogram()
	record(h, late)
	reportLateness(b, prefix, h)
	rawdata.Lateness(b, strings.TrimSuffix(prefix, "-"), late)
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
	turns := make(chan int, len(load.due))
	var pushers sync.WaitGroup
	for range 64 { // a confirmed push may take longer than the interval
		pushers.Go(func() {
			for i := range turns {
				m := load.message(i)
				if _, err := q.Push(context.Background(), m.Body, delayq.At(m.Due)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	atPace(start, len(load.due), func(i int) { turns <- i })
	close(turns)
	pushers.Wait()
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
	report := func(ns int64, name string) { b.ReportMetric(float64(ns)/1e6, prefix+"late-"+name+"-ms") }
	report(h.ValueAtQuantile(50), "p50")
	report(h.ValueAtQuantile(99), "p99")
	report(h.Max(), "max")
}
