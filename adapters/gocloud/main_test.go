package gocloud

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// stores are all of delayq's that can hold metadata.
var stores = map[string]func(*testing.T) backend.Backend{
	"memory":   func(*testing.T) backend.Backend { return memory.New() },
	"zsetpoll": func(t *testing.T) backend.Backend { return zsetpoll.New(testenv.SharedRedis(t).Client(t)) },
	"keyspace": func(t *testing.T) backend.Backend { return keyspace.New(testenv.SharedRedis(t).Client(t)) },
	"redisson": func(t *testing.T) backend.Backend {
		return redisson.New(testenv.SharedRedis(t).Client(t), redisson.WithCodec(redisson.Envelope))
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

// newQueue opens a queue that no other test and no earlier run uses.
func newQueue(t *testing.T, b backend.Backend, opts ...delayq.Option) delayq.Queue {
	t.Helper()
	name := fmt.Sprintf("gocloud-%s-%d", b.Traits().Name, lastQueue.Add(1))
	return openQueue(t, b, name, opts...)
}

var lastQueue atomic.Int64

func openQueue(t *testing.T, b backend.Backend, name string, opts ...delayq.Option) delayq.Queue {
	t.Helper()
	opts = append(opts, delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	q, err := delayq.New(t.Context(), name, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	return q
}
