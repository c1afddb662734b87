package bench

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
)

// BenchmarkRabbitPush measures pushes of 100 bytes that are due in an hour.
//
//	go         256 goroutines, a call a message
//	go-batch   16 goroutines, 100 messages a call: about as many under way as raw has
//	go-lone    one goroutine, 100 messages a call
//	raw        publishing to a quorum queue with the arguments of a level, persistent and mandatory, with 2,000 messages
//	           under way, and nothing in them but the body
//	raw-whole  the same with the id and the headers that the backend gives its messages
//	raw-256    as raw, with as many messages under way as there are goroutines
//
// Goal for go/raw and go-batch/raw: 0.8.
func BenchmarkRabbitPush(b *testing.B) {
	messages := unlessShort(40_000, 2000)
	url := ownVhost(b)
	q, r := onRabbit(b, url), newRaw(b, url)
	wait := r.declare(b, "raw.wait", waiting(time.Hour, "raw.nowhere"))
	whole := r.declare(b, "raw-whole.wait", waiting(time.Hour, "raw.nowhere"))
	sides := newRace()
	for range unlessShort(5, 1) {
		sides.run("go", messages, func() { pushSingly(b, q, messages, 256) })
		sides.run("raw", messages, func() { r.publish(b, wait, messages, rawWindow, bareMessage) })
		sides.run("go-batch", messages, func() { pushInBatches(b, q, messages, 16) })
		sides.run("raw-whole", messages, func() { r.publish(b, whole, messages, rawWindow, wholeMessage) })
		sides.run("raw-256", messages, func() { r.publish(b, wait, messages, 256, bareMessage) })
		sides.run("go-lone", messages, func() { pushInBatches(b, q, messages, 1) })
	}
	sides.report(b, "raw")
}

func bareMessage(int) amqp.Publishing { return bare(body) }

// wholeMessage has what the backend would put there.
func wholeMessage(i int) amqp.Publishing {
	m := bare(body)
	m.MessageId, m.CorrelationId = "0198c2f5e4a07b3c9d1e2f3a4b5c6d7e", strconv.Itoa(i)
	m.Headers = amqp.Table{"delayq-due": time.Now().UnixMicro()}
	return m
}

func pushSingly(b *testing.B, q delayq.Queue, n, goroutines int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for left.Add(-1) >= 0 && !b.Failed() {
				pushOne(b, q)
			}
		})
	}
	all.Wait()
}

func pushInBatches(b *testing.B, q delayq.Queue, n, goroutines int) {
	b.Helper()
	ms := slices.Repeat([]delayq.Message{{Body: body, Delay: time.Hour}}, n)
	pushConcurrently(b, q, ms, goroutines)
}

// pushConcurrently pushes messages, 100 a call.
func pushConcurrently(b *testing.B, q delayq.Queue, ms []delayq.Message, goroutines int) {
	b.Helper()
	batches := make(chan []delayq.Message)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for batch := range batches {
				if _, err := q.PushBatch(context.Background(), batch); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for batch := range slices.Chunk(ms, 100) {
		batches <- batch
	}
	close(batches)
	all.Wait()
}
