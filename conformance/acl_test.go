package conformance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// rightsOf returns the rights that the documentation lists for a mode.
func rightsOf(t *testing.T, mode string) []string {
	t.Helper()
	if strings.HasPrefix(mode, "redisson") {
		return redistest.Rights(t, "../docs/redisson.md", "redisson")
	}
	return redistest.Rights(t, "../docs/redis.md", "all", mode)
}

// aclModes are the ways to run on a Redis server.
var aclModes = map[string]func(redis.UniversalClient, string) backend.Backend{
	"zsetpoll": func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix))
	},
	"zsetpoll-arbitrate": func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix), zsetpoll.Claims(zsetpoll.Arbitrate))
	},
	"zsetpoll-mover": func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix), zsetpoll.Claims(zsetpoll.Mover))
	},
	"keyspace": func(c redis.UniversalClient, prefix string) backend.Backend {
		return keyspace.New(c, keyspace.Prefix(prefix), keyspace.Sweep(200*time.Millisecond))
	},
	"redisson": func(c redis.UniversalClient, prefix string) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Bytes), redisson.NamePrefix(prefix+":"), redisson.Sweep(200*time.Millisecond))
	},
	"redisson-envelope": func(c redis.UniversalClient, prefix string) backend.Backend {
		return redisson.New(c, redisson.WithCodec(redisson.Envelope), redisson.NamePrefix(prefix+":"), redisson.Sweep(200*time.Millisecond))
	},
}

// asWorker returns new options of the user with these rights: a client changes its options.
func asWorker(server *testenv.RedisServer) *redis.Options {
	o := server.Options()
	o.Username, o.Password = "worker", redistest.Password
	return o
}

// TestRights runs the suite as a user with the documented rights and no others.
func TestRights(t *testing.T) {
	testenv.In(t, testenv.All)
	for mode, open := range aclModes {
		t.Run(mode, func(t *testing.T) {
			server := testenv.Redis(t, testenv.Private())
			_ = redistest.User(t, server, "worker", rightsOf(t, mode), "~*conformance-*", "&*conformance-*", "&__key*__:*")
			h := redisHarness(func() redis.UniversalClient { return redis.NewClient(asWorker(server)) }, open)
			h.Leftovers = nil // KEYS is not for workers
			h.Parallel, h.Patience = true, patience
			conformance.RunSome(t, h, func(c conformance.Check) bool { return c.Alone })
			t.Parallel()
			conformance.RunSome(t, h, func(c conformance.Check) bool { return !c.Alone })
		})
	}
	t.Parallel()
}
