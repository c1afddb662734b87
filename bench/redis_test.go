package bench

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/bench/internal/load"
)

// onRedis returns a target whose stores each have a server of their own.
func onRedis(name string, over func(redis.UniversalClient) backend.Backend) target {
	return target{
		name:    name,
		onRedis: over,
		open:    func(tb testing.TB) backend.Backend { return over(load.OwnRedis(tb).Client(tb)) },
		virtual: true,
	}
}

// overRedis runs a benchmark over the backends on Redis.
func overRedis(b *testing.B, run func(*testing.B, target)) {
	for _, t := range targets {
		if t.onRedis != nil {
			b.Run("backend="+t.name, func(b *testing.B) { run(b, t) })
		}
	}
}

// connect opens a backend with a client of its own, as another process would, and counts the
// client's commands.
func (t target) connect(b *testing.B, server load.Redis) (backend.Backend, *sent) {
	b.Helper()
	count := new(sent)
	client := server.Client(b)
	client.AddHook(count)
	store := t.onRedis(client)
	b.Cleanup(func() { load.Must(b, store.Close()) })
	return store, count
}

func open(b *testing.B, store backend.Backend, name string) delayq.Queue {
	b.Helper()
	q, err := delayq.New(context.Background(), name, delayq.WithBackend(store), load.Quiet)
	load.Must(b, err)
	b.Cleanup(func() { load.Must(b, q.Close()) })
	return q
}

// tripTime is the 99th percentile of a round trip to an idle server.
func tripTime(b *testing.B) time.Duration {
	b.Helper()
	client := load.OwnRedis(b).Control
	trips := make([]time.Duration, 2000)
	for i := range trips {
		start := time.Now()
		load.Must(b, client.Ping(context.Background()).Err())
		trips[i] = time.Since(start)
	}
	return load.Quantile(trips, 0.99)
}

// sent counts a client's commands, without those of its subscriptions.
type sent struct{ commands, trips atomic.Int64 }

var _ redis.Hook = (*sent)(nil)

func (s *sent) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.add(1)
		return next(ctx, cmd)
	}
}

func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.add(len(cmds))
		return next(ctx, cmds)
	}
}

func (s *sent) add(commands int) {
	s.commands.Add(int64(commands))
	s.trips.Add(1)
}
