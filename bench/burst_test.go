package bench

import (
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
	rawdata "github.com/delayq/delayq/bench/internal/raw"
)

// BenchmarkBurst measures how fast 32 workers of one Consume drain 100,000 messages that are
// due at one instant, in msgs/s from that instant to the last ack. Goal for zsetpoll: five times
// the rate of asynq, which bench/peers measures. When each message arrived is kept for the report.
func BenchmarkBurst(b *testing.B) {
	overTargets(b, func(b *testing.B, t target) {
		messages := t.size(100_000, 10_000)
		q := t.queue(b)
		lead := t.lead()
		var all time.Duration
		var last []time.Duration
		for b.Loop() {
			late, took, inTime := burst(b, q, messages, lead)
			for ; !inTime; late, took, inTime = burst(b, q, messages, lead) {
				lead *= 2
			}
			all += took
			last = late
		}
		rawdata.Arrivals(b, "", last)
		b.ReportMetric(float64(messages)*float64(b.N)/all.Seconds(), "msgs/s")
	})
}

// lead is how long a store that is not slow takes to be pushed a burst.
func (t target) lead() time.Duration {
	if t.inProcess {
		return time.Second / 2
	}
	return window(3 * time.Second)
}

// burst pushes messages that are all due after the lead. It returns how late they were and the time
// from the due time to the last ack, unless the pushes took longer than the lead.
func burst(
	b *testing.B, q delayq.Queue, messages int, lead time.Duration,
) (late []time.Duration, took time.Duration, inTime bool) {
	b.StopTimer()
	due := time.Now().Add(lead)
	t := load.Burst(messages, due)
	load.PushBatches(b, q, t.Messages(), delayq.MaxBatch, 1)
	inTime = time.Now().Before(due)
	wait := consume(b, q, t)
	time.Sleep(time.Until(due))
	b.StartTimer()
	wait()
	took = time.Since(due)
	return t.Outcome().Late, took, inTime
}
