package watermill_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/zsetpoll"
)

// suiteOptions have nacked messages come again at once, and messages that the suite never acks
// given back within its 15 s.
var suiteOptions = []delayq.ConsumeOption{delayq.Retry(delayq.Delays{0}), delayq.Drain(time.Second)}

// Watermill's own suite decides whether this is a Pub/Sub. The package's comment lists the features
// that are not claimed.
func TestPubSub(t *testing.T) {
	onEachStore(t, func(t *testing.T, b backend.Backend) {
		ordered := b.Traits().Supports(delayq.Ordering)
		features := tests.Features{
			Persistent: true, GuaranteedOrder: ordered, GuaranteedOrderWithSingleSubscriber: ordered,
			ForceShort: !testenv.Runs(t, testenv.All), // with a hundredth of the messages
		}
		tests.TestPubSub(t, features, func(t *testing.T) (message.Publisher, message.Subscriber) {
			return pair(t, b, suiteOptions...)
		}, nil)
	})
}

// restarts makes a command that kills the server, starts it again and returns.
func restarts(t *testing.T, server interface {
	Kill()
	Restart()
}) []string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			server.Kill()
			server.Restart()
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return []string{"bash", "-c", fmt.Sprintf("cat < /dev/tcp/127.0.0.1/%d", l.Addr().(*net.TCPAddr).Port)}
}

// The suite's test of reconnecting, with a server that is killed twice.
func TestReconnect(t *testing.T) {
	t.Parallel()
	reconnect := func(t *testing.T, b backend.Backend, restart []string) {
		t.Cleanup(func() { must(t, b.Close()) })
		c := tests.TestContext{TestID: tests.NewTestID(), Features: tests.Features{Persistent: true, RestartServiceCommand: restart}}
		tests.TestReconnect(t, c, func(t *testing.T) (message.Publisher, message.Subscriber) {
			return pair(t, b, suiteOptions...)
		})
	}
	t.Run("zsetpoll", func(t *testing.T) {
		t.Parallel()
		server := testenv.Redis(t, testenv.Private(), testenv.AOF(), testenv.Directive("appendfsync", "always"))
		reconnect(t, zsetpoll.New(server.Client(t)), restarts(t, server))
	})
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
		reconnect(t, patient{rabbitmq.New(server.URL())}, restarts(t, server))
	})
}
