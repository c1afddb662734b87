package redis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// store is a backend in one of its modes.
type store struct {
	name     string // as in the table of rights in the documentation, but for redisson's modes
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

// eachStore runs a test for each store. A test of seconds asks for the store's tier.
func eachStore(t *testing.T, f func(t *testing.T, s store)) {
	t.Parallel()
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f(t, s)
		})
	}
}

func (s store) redisson() bool { return strings.HasPrefix(s.name, "redisson") }

// channel is where a message that becomes the first of a queue is announced.
func (s store) channel(queue string) string {
	if s.redisson() {
		return "redisson_delay_queue_channel:{" + queue + "}"
	}
	return "delayq:{" + queue + "}:wake"
}

// connections is how many connections subscribe.
func (s store) connections() int {
	if s.name == "keyspace" {
		return 2 // for expiries, too
	}
	return 1
}

// rights are the rights that the documentation gives to a user.
func (s store) rights(t *testing.T) []string {
	t.Helper()
	if s.redisson() {
		return redistest.Rights(t, "../../docs/redisson.md", "redisson")
	}
	return redistest.Rights(t, "../../docs/redis.md", "all", s.name)
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
	return redistest.Open(t, b, "orders")
}

// empty waits until no key is left. Some end by themselves a moment later.
func empty(t *testing.T, client *redis.Client) {
	t.Helper()
	await(t, "the last key to go", func() bool {
		return len(slices.DeleteFunc(client.Keys(t.Context(), "*").Val(), redistest.Stays)) == 0
	})
}
