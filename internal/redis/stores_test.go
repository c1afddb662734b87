package redis_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// store is a backend in one of its modes.
type store struct {
	name     string
	open     func(redis.UniversalClient) backend.Backend
	messages int  // that TestRepliesCut pushes
	java     bool // due messages are in a list for Java, too; a push is not repeated, so that some fail
	tier     testenv.Tier
}

// stores are in the modes that differ in how they repeat a call or lay messages out.
var stores = []store{
	{"zsetpoll", zset(zsetpoll.Script), 100_000, false, testenv.Default},
	{"zsetpoll-arbitrate", zset(zsetpoll.Arbitrate), 20_000, false, testenv.All},
	{"zsetpoll-mover", zset(zsetpoll.Mover), 20_000, false, testenv.All},
	{"keyspace", func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }, 20_000, false, testenv.Default},
	{"redisson", shared(), 20_000, true, testenv.Default},
	{"redisson-no-index", shared(redisson.NoIndex()), 20_000, true, testenv.Default},
	{"redisson-envelope", shared(redisson.WithCodec(redisson.Envelope)), 20_000, false, testenv.Default},
}

func zset(mode zsetpoll.Mode) func(redis.UniversalClient) backend.Backend {
	return func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Claims(mode)) }
}

func shared(opts ...redisson.Option) func(redis.UniversalClient) backend.Backend {
	return func(c redis.UniversalClient) backend.Backend {
		return redisson.New(c, append(opts, redisson.Sweep(50*time.Millisecond))...)
	}
}

// openQueue opens a queue that is closed with its backend when the test ends.
func openQueue(t *testing.T, b backend.Backend) backend.Queue {
	t.Helper()
	t.Cleanup(func() { must(t, b.Close()) })
	q, err := b.Open(t.Context(), "orders", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return q
}

func leasesOf(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}
