package watermill_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/zsetpoll"
)

// Every message that was published comes, although the server is killed twice meanwhile. This is
// TestReconnect of Watermill's suite without its data race: that test reads its list of published
// messages while a goroutine still appends to it.
func TestServerThatRestarts(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All)
	t.Run("zsetpoll", func(t *testing.T) {
		t.Parallel()
		server := testenv.Redis(t, testenv.Private(), testenv.AOF(), testenv.Directive("appendfsync", "always"))
		publishThroughRestarts(t, zsetpoll.New(server.Client(t)), func() {}, server)
	})
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
		publishThroughRestarts(t, patient{rabbitmq.New(server.URL())}, server.Sync, server)
	})
}

type killable interface {
	Kill()
	Restart()
}

func publishThroughRestarts(t *testing.T, b backend.Backend, opened func(), server killable) {
	t.Helper()
	t.Cleanup(func() { must(t, b.Close()) })
	const count, publishers = 1500, 20
	pub, sub := pair(t, b, suiteOptions...)
	messages, err := sub.Subscribe(t.Context(), "topic")
	must(t, err)
	opened()
	next := make(chan int)
	for range publishers {
		go func() {
			for i := range next {
				for pub.Publish("topic", message.NewMessage(strconv.Itoa(i), nil)) != nil {
					time.Sleep(50 * time.Millisecond) // between tries, while the server is down
				}
			}
		}()
	}
	received := make(chan int)
	go func() {
		seen := make(map[string]bool)
		for msg := range messages {
			seen[msg.UUID] = true
			msg.Ack()
			if len(seen) == count {
				break
			}
		}
		received <- len(seen)
	}()
	for i := range count {
		if i == count/3 || i == count/2 {
			server.Kill()
			server.Restart()
		}
		next <- i
	}
	close(next)
	if n := <-received; n != count {
		t.Errorf("%d of %d messages came", n, count)
	}
}
