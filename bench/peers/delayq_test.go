package peers

import (
	"context"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

func openZsetpoll(b *testing.B) system {
	return openDelayq(b, func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) })
}

func openKeyspace(b *testing.B) system {
	return openDelayq(b, func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) })
}

func openRedisson(b *testing.B) system {
	return openDelayq(b, func(c redis.UniversalClient) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Bytes))
	})
}

// ours is a queue of this library with its default settings.
type ours struct {
	redisServer
	queue delayq.Queue
}

func openDelayq(b *testing.B, over func(redis.UniversalClient) backend.Backend) system {
	b.Helper()
	server := ownRedis(b)
	store := over(server.Client(b))
	quiet := delayq.WithLogger(slog.New(slog.DiscardHandler))
	q, err := delayq.New(context.Background(), "bench", delayq.WithBackend(store), quiet)
	must(b, err)
	b.Cleanup(func() {
		must(b, q.Close())
		must(b, store.Close())
	})
	return ours{server, q}
}

func (o ours) push(ctx context.Context, m message) error {
	_, err := o.queue.Push(ctx, m.body, delayq.At(m.due))
	return err
}

func (o ours) pushAll(ctx context.Context, ms []message) error {
	batch := make([]delayq.Message, len(ms))
	for i, m := range ms {
		batch[i] = delayq.Message{Body: m.body, Due: m.due}
	}
	_, err := o.queue.PushBatch(ctx, batch)
	return err
}

func (o ours) consume(b *testing.B, handle func(body []byte)) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.queue.Consume(ctx, take(handle), delayq.Workers(workers)) }()
	return func() {
		b.Helper()
		cancel()
		must(b, <-ended)
	}
}

func take(handle func(body []byte)) delayq.Handler {
	return func(_ context.Context, d *delayq.Delivery) error {
		handle(d.Body)
		return nil
	}
}

func (o ours) left(ctx context.Context) (int64, error) {
	s, err := o.queue.Stats(ctx)
	return s.Scheduled + s.Ready + s.InFlight + s.Dead, err
}
