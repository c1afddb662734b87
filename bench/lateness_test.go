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
//	p50-us p99-us max-us                 of the queue; goal for p99 on memory 2,000
//	bare-p50-us bare-p99-us bare-max-us  of time.AfterFunc
//	early                                always 0, or the benchmark fails
//
// Lateness counts from the time that the plan says, not from a push that may itself be late.
// The two take turns rather than run at once: the timers of one would wake the process for
// the other, which a program that has only one of them does not enjoy.
func BenchmarkLateness(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		q := t.queue(b)
		queue, bare := newHistogram(), newHistogram()
		for range 2 {
			record(bare, lateBare(b))
			record(queue, lateQueue(b, q))
		}
		reportLateness(b, "", queue)
		reportLateness(b, "bare-", bare)
		b.ReportMetric(0, "early")
		b.ReportMetric(0, "ns/op") // means nothing here
	})
}

const (
	lateMessages = 5000 // of one turn
	lateInterval = 500 * time.Microsecond
)

// plan returns the due times of one turn: message i is to be pushed after i intervals.
func plan(start time.Time) *tally {
	r := newRand()
	due := make([]time.Time, lateMessages)
	for i := range due {
		delay := time.Second + time.Duration(r.Int64N(int64(2*time.Second)))
		due[i] = start.Add(time.Duration(i)*lateInterval + delay)
	}
	return newTally(due)
}

// atPace calls push for each message when its turn has come.
func atPace(start time.Time, push func(i int)) {
	for i := range lateMessages {
		time.Sleep(time.Until(start.Add(time.Duration(i) * lateInterval)))
		push(i)
	}
}

func lateBare(b *testing.B) []time.Duration {
	start := time.Now()
	t := plan(start)
	atPace(start, func(i int) {
		time.AfterFunc(time.Until(t.due[i]), func() { t.arrived(i) })
	})
	t.wait(b)
	return t.late
}

func lateQueue(b *testing.B, q delayq.Queue) []time.Duration {
	start := time.Now()
	t := plan(start)
	wait := consume(b, q, t)
	atPace(start, func(i int) {
		m := t.message(i)
		_, err := q.Push(context.Background(), m.Body, delayq.At(m.Due))
		must(b, err)
	})
	wait()
	return t.late
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
