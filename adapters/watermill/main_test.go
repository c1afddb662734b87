package watermill_test

import (
	"context"
	"io"
	"log"
	"log/slog"
	"testing"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/delayq/delayq"
	adapter "github.com/delayq/delayq/adapters/watermill"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Watermill's suite logs each message
	testenv.Main(m)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// stores are all of delayq's that can hold messages of Watermill.
var stores = map[string]func(*testing.T) backend.Backend{
	"memory": func(*testing.T) backend.Backend { return memory.New() },
	"zsetpoll": func(t *testing.T) backend.Backend {
		return zsetpoll.New(testenv.SharedRedis(t).Client(t), zsetpoll.Prefix("z:"+t.Name()))
	},
	"keyspace": func(t *testing.T) backend.Backend {
		return keyspace.New(testenv.SharedRedis(t).Client(t), keyspace.Prefix("k:"+t.Name()))
	},
	"redisson": func(t *testing.T) backend.Backend {
		return redisson.New(testenv.SharedRedis(t).Client(t), redisson.WithCodec(redisson.Envelope), redisson.NamePrefix("r:"+t.Name()+":"))
	},
	"rabbitmq": func(t *testing.T) backend.Backend {
		return patient{rabbitmq.New(testenv.SharedRabbitMQ(t).URL())}
	},
}

// patient is a broker on a busy machine: a connection or a queue may take longer than it may.
type patient struct{ backend.Backend }

func (p patient) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	return testenv.RetryOnBusyRabbit(ctx, func() (backend.Queue, error) { return p.Backend.Open(ctx, name, o) })
}

// topicOf returns a topic that no other test and no earlier run uses.
func topicOf(t *testing.T) string { return t.Name() + "/" + watermill.NewShortUUID() }

// onEachStore runs a test on each store, with a backend that is closed after it.
func onEachStore(t *testing.T, test func(*testing.T, backend.Backend)) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			t.Cleanup(func() { must(t, b.Close()) })
			test(t, b)
		})
	}
}

// pair returns a publisher and a subscriber, which are closed when the test ends.
func pair(t *testing.T, b backend.Backend, opts ...delayq.ConsumeOption) (*adapter.Publisher, *adapter.Subscriber) {
	t.Helper()
	c := adapter.Config{
		Backend: b, Consume: opts,
		Options: []delayq.Option{delayq.WithLogger(slog.New(slog.DiscardHandler))},
	}
	pub, err := adapter.NewPublisher(c)
	must(t, err)
	sub, err := adapter.NewSubscriber(c)
	must(t, err)
	t.Cleanup(func() { must(t, pub.Close()) })
	t.Cleanup(func() { must(t, sub.Close()) })
	return pub, sub
}
