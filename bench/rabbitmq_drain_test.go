package bench

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// drainTTL is a delay that the levels wait for in one queue, as raw does: a single digit, 0x1000
// ms.
func drainTTL() time.Duration {
	return load.UnlessShort(0x1000*time.Millisecond, 0x400*time.Millisecond)
}

// BenchmarkRabbitDrain measures messages of 100 bytes that have all waited in one queue, in msgs/s
// from the moment that the first is due until the broker has read the last ack.
//
//	go         32 workers of Consume
//	go-batch   ReceiveBatch and AckBatch of 100 messages by four goroutines
//	go-mixed   32 workers, but all messages are due at one instant: they go through one level or
//	           two, by what was left of their delays when they were pushed
//	raw        a quorum queue with the same time to live, dead-lettering at least once into the
//	           quorum queue that is consumed, 2,000 messages unacknowledged, an ack for 200;
//	           nothing in the messages but the body
//	raw-whole  the same with the id and the headers that the backend gives its messages
//
// Goal for go and go-batch against raw and raw-whole: 0.8. The messages are due at the pace at
// which they were pushed: where the pushes took as long as the drain, it says so.
func BenchmarkRabbitDrain(b *testing.B) {
	messages := load.UnlessShort(30_000, 2000)
	url := ownVhost(b)
	q, r := onRabbit(b, url), newRaw(b, url)
	to := r.declare(b, "raw", quorum())
	wait := r.declare(b, "raw.wait", waiting(drainTTL(), to))
	load.Must(b, r.subscribe(to, rawWindow))
	sides := load.NewRace()
	for range load.UnlessShort(3, 1) {
		sides.Note("go", drainInGo(b, q, messages, consume))
		sides.Note("raw", r.drain(b, wait, messages, bareMessage))
		sides.Note("go-batch", drainInGo(b, q, messages, consumeBatches))
		sides.Note("raw-whole", r.drain(b, wait, messages, wholeMessage))
		if !testing.Short() {
			sides.Note("go-mixed", drainMixed(b, q, messages))
		}
	}
	reportRace(b, sides, "raw")
}

// drainInGo returns the rate.
func drainInGo(b *testing.B, q delayq.Queue, n int, consume consumer) float64 {
	b.Helper()
	first := time.Now().Add(drainTTL())
	t := load.Burst(n, first)
	ms := t.Messages()
	for i := range ms {
		ms[i].Due, ms[i].Delay = time.Time{}, drainTTL()
	}
	load.PushBatches(b, q, ms, 100, 16)
	pushed := time.Since(first.Add(-drainTTL()))
	consume(b, q, t)()
	return drained(b, n, pushed, time.Since(first))
}

func drainMixed(b *testing.B, q delayq.Queue, n int) float64 {
	b.Helper()
	start := time.Now()
	due := start.Add(drainTTL())
	t := load.Burst(n, due)
	load.PushBatches(b, q, t.Messages(), 100, 16)
	wait := consume(b, q, t)
	if late := time.Since(due); late > 0 {
		b.Logf("the pushes took %v too long: the rate is too low", late)
	}
	wait()
	return float64(n) / time.Since(due).Seconds()
}

// drained is the rate of a drain.
func drained(b *testing.B, n int, pushed, took time.Duration) float64 {
	b.Helper()
	if took < pushed*5/4 {
		b.Logf("pushing %d messages took %v and draining them %v: the rate may be that of the pushes", n, pushed, took)
	}
	return float64(n) / took.Seconds()
}

// drain returns the rate.
func (r *raw) drain(b *testing.B, queue string, n int, message func(int) amqp.Publishing) float64 {
	b.Helper()
	start := time.Now()
	r.publish(b, queue, n, rawWindow, message)
	pushed := time.Since(start)
	r.take(b, n)
	load.Must(b, r.consuming.Qos(rawWindow, 0, false)) // the broker replies once it has read the acks
	return drained(b, n, pushed, time.Since(start.Add(drainTTL())))
}

// take takes n messages, with an ack for 200.
func (r *raw) take(b *testing.B, n int) {
	b.Helper()
	lost := time.After(time.Minute + drainTTL())
	for i := 1; i <= n; i++ {
		select {
		case d := <-r.deliveries:
			if i%200 == 0 || i == n {
				load.Must(b, r.consuming.Ack(d.DeliveryTag, true))
			}
		case <-lost:
			b.Fatalf("%d of %d messages are lost", n-i+1, n)
		}
	}
}
