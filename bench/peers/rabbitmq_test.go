package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// BenchmarkRabbitPush measures pushes of 100 bytes that are due in an hour, beside programs that
// publish by hand and wait for each confirmation, on the same broker and with the same client
// library.
//
//	delayq    256 goroutines, a call a message
//	lone      one publisher that waits for each confirmation before its next message, and so does
//	          a program whose goroutines share a channel under a lock
//	channels  256 goroutines, each with a channel of its own, that do the same: the most that one
//	          gets of single confirmations
//
// The publishers send persistent, mandatory messages to a quorum queue such as delayq's messages
// wait in. Goal for delayq: 5 against lone. There is none against channels, where the broker has
// just as many messages under way on both sides.
func BenchmarkRabbitPush(b *testing.B) {
	const goroutines = 256
	url := ownVhost(b)
	conn := dial(b, url)
	say(b, "rabbitmq", fmt.Sprint(conn.Properties["version"]), "github.com/rabbitmq/amqp091-go")
	q, lone, many := openQueue(b, rabbitmq.New(url)).queue, publishers(b, conn, 1), publishers(b, conn, goroutines)
	declareWaiting(b, conn)
	messages, few := unlessShort(20_000, 1000), unlessShort(2000, 100)
	pushRabbit(b, q, few, goroutines) // the first ones find nothing declared
	sides := newRace()
	for range unlessShort(3, 1) {
		sides.run("delayq", messages, func() { pushRabbit(b, q, messages, goroutines) })
		sides.run("lone", few, func() { publishSingly(b, lone, few) })
		sides.run("channels", messages, func() { publishSingly(b, many, messages) })
	}
	sides.report(b, nothing, "lone", "channels")
}

func ownVhost(tb testing.TB) string {
	tb.Helper()
	server := testenv.SharedRabbitMQ(tb)
	return server.VhostURL(server.Vhost(tb))
}

func dial(b *testing.B, url string) *amqp.Connection {
	b.Helper()
	conn, err := amqp.Dial(url)
	must(b, err)
	b.Cleanup(func() { must(b, conn.Close()) })
	return conn
}

func pushRabbit(b *testing.B, q delayq.Queue, n, goroutines int) {
	b.Helper()
	body := make([]byte, bodySize)
	var left atomic.Int64
	left.Store(int64(n))
	fromMany(goroutines, func(int) {
		for left.Add(-1) >= 0 && !b.Failed() {
			if _, err := q.Push(context.Background(), body, delayq.After(time.Hour)); err != nil {
				b.Error(err)
			}
		}
	})
}

// publishers are channels that confirm.
func publishers(b *testing.B, conn *amqp.Connection, n int) []*amqp.Channel {
	b.Helper()
	chs := make([]*amqp.Channel, n)
	for i := range chs {
		ch, err := conn.Channel()
		must(b, err)
		must(b, ch.Confirm(false))
		chs[i] = ch
	}
	return chs
}

const waitingQueue = "by-hand"

// declareWaiting declares a queue with the arguments that delayq gives to those in which messages
// wait.
func declareWaiting(b *testing.B, conn *amqp.Connection) {
	b.Helper()
	ch, err := conn.Channel()
	must(b, err)
	_, err = ch.QueueDeclare(waitingQueue, true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-message-ttl": time.Hour.Milliseconds(),
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "nowhere",
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	})
	must(b, err)
	must(b, ch.Close())
}

// publishSingly has every channel wait for the confirmation of a message before the next.
func publishSingly(b *testing.B, chs []*amqp.Channel, n int) {
	b.Helper()
	m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: make([]byte, bodySize)}
	var left atomic.Int64
	left.Store(int64(n))
	fromMany(len(chs), func(i int) {
		for left.Add(-1) >= 0 && !b.Failed() {
			c, err := chs[i].PublishWithDeferredConfirm("", waitingQueue, true, false, m)
			if err != nil {
				b.Error(err)
			} else if !c.Wait() {
				b.Error("the broker refused a message")
			}
		}
	})
}
