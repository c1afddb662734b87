package bench

import (
	"slices"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkRabbitPush measures pushes of 100 bytes that are due in an hour.
//
//	go         256 goroutines, a call a message
//	go-batch   16 goroutines, 100 messages a call: about as many under way as raw has
//	go-lone    one goroutine, 100 messages a call
//	raw        publishing to a quorum queue with the arguments of a level, persistent and
//	           mandatory, with 2,000 messages under way, and nothing in them but the body
//	raw-whole  the same with the id and the headers that the backend gives its messages
//	raw-256    as raw-whole, with as many messages under way as there are goroutines
//	lone       as raw, but one publisher that waits for each confirmation before its next message,
//	           and so does a program whose goroutines share a channel under a lock
//	channels   256 goroutines, each with a channel of its own, that do the same: the most that
//	           one gets of single confirmations
//
// Goal for go and go-batch against raw and raw-whole: 0.8; for go against lone: 5. There is none
// against channels, where the broker has just as many messages under way on both sides. Whose turn is first changes from round
// to round: each has a queue of its own that grows.
func BenchmarkRabbitPush(b *testing.B) {
	messages, few := load.UnlessShort(20_000, 2000), load.UnlessShort(2000, 100)
	url := ownVhost(b)
	q, r := onRabbit(b, url), newRaw(b, url)
	wait := r.declare(b, "raw.wait", waiting(time.Hour, "raw.nowhere"))
	whole := r.declare(b, "raw-whole.wait", waiting(time.Hour, "raw.nowhere"))
	pushed := slices.Repeat([]delayq.Message{{Body: load.Body, Delay: time.Hour}}, messages)
	lone, many := publishers(b, url, 1), publishers(b, url, 256)
	turns := []struct {
		name     string
		messages int
		push     func()
	}{
		{"go", messages, func() { load.Push(b, q, messages, 256) }},
		{"raw", messages, func() { r.publish(b, wait, messages, rawWindow, bareMessage) }},
		{"go-batch", messages, func() { load.PushBatches(b, q, pushed, 100, 16) }},
		{"raw-whole", messages, func() { r.publish(b, whole, messages, rawWindow, routedMessage) }},
		{"raw-256", messages, func() { r.publish(b, whole, messages, 256, routedMessage) }},
		{"lone", few, func() { publishSingly(b, lone, wait, few) }},
		{"channels", messages, func() { publishSingly(b, many, wait, messages) }},
		{"go-lone", messages, func() { load.PushBatches(b, q, pushed, 100, 1) }},
	}
	sides := load.NewRace()
	for round := range load.UnlessShort(6, 1) {
		for i := range turns {
			turn := turns[(i+round)%len(turns)]
			sides.Run(turn.name, turn.messages, turn.push)
		}
	}
	reportRace(b, sides, "raw")
	for _, side := range []string{"lone", "channels"} {
		b.ReportMetric(sides.Median("go")/sides.Median(side), "go/"+side)
	}
}

func bareMessage(int) amqp.Publishing { return bare(load.Body) }

// wholeMessage has the id and headers that the backend would set.
func wholeMessage(i int) amqp.Publishing {
	m := bare(load.Body)
	m.MessageId, m.CorrelationId = "0198c2f5e4a07b3c9d1e2f3a4b5c6d7e", strconv.Itoa(i)
	m.Headers = amqp.Table{"delayq-due": time.Now().UnixMicro()}
	return m
}

// routedMessage also has the keys for the rest of its way, of an hour here: 0x36ee80 ms.
func routedMessage(i int) amqp.Publishing {
	m := wholeMessage(i)
	m.Headers["BCC"] = []any{"5>46", "4>3e", "3>2e", "2>18"}
	return m
}

// publishers are channels of one connection that confirm.
func publishers(b *testing.B, url string, n int) []*amqp.Channel {
	b.Helper()
	conn, err := amqp.Dial(url)
	load.Must(b, err)
	b.Cleanup(func() { load.Must(b, conn.Close()) })
	chs := make([]*amqp.Channel, n)
	for i := range chs {
		chs[i], err = conn.Channel()
		load.Must(b, err)
		load.Must(b, chs[i].Confirm(false))
	}
	return chs
}

// publishSingly has every channel wait for the confirmation of a message before the next.
func publishSingly(b *testing.B, chs []*amqp.Channel, queue string, n int) {
	b.Helper()
	load.Calls(b, n, len(chs), func(goroutine, _ int) error {
		c, err := chs[goroutine].PublishWithDeferredConfirm("", queue, true, false, bare(load.Body))
		if err == nil && !c.Wait() {
			err = errRefused
		}
		return err
	})
}
