package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/shard"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

func TestMain(m *testing.M) {
	shard.Patience = 10 * time.Second
	testenv.Main(m)
}

// redisBackends are the backends on Redis: each way to claim, on one server and on a Cluster.
func redisBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	const patience = time.Minute // a busy machine can exceed the client library's 3 to 5 s
	single := func() redis.UniversalClient {
		o := testenv.SharedRedis(t).Options()
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = patience, patience, patience
		return redis.NewClient(o)
	}
	cluster := func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: testenv.SharedRedisCluster(t).Addrs(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		})
	}
	hs := make(map[string]conformance.Harness)
	for name, mode := range map[string]zsetpoll.Mode{
		"zsetpoll": zsetpoll.Script, "zsetpoll-arbitrate": zsetpoll.Arbitrate, "zsetpoll-mover": zsetpoll.Mover,
	} {
		open := func(c redis.UniversalClient, prefix string) backend.Backend {
			return zsetpoll.New(c, zsetpoll.Claims(mode), zsetpoll.Prefix(prefix))
		}
		hs[name] = redisHarness(single, open)
		hs[name+"-cluster"] = redisHarness(cluster, open)
	}
	swept := func(c redis.UniversalClient, prefix string) backend.Backend {
		return keyspace.New(c, keyspace.Prefix(prefix), keyspace.Sweep(200*time.Millisecond))
	}
	hs["keyspace"] = redisHarness(single, swept)
	hs["keyspace-cluster"] = redisHarness(cluster, swept)
	for _, n := range []int{4, 16} {
		split := func(c redis.UniversalClient, prefix string) backend.Backend {
			return zsetpoll.New(c, zsetpoll.Shards(n), zsetpoll.Prefix(prefix), zsetpoll.Poll(200*time.Millisecond))
		}
		splitSwept := func(c redis.UniversalClient, prefix string) backend.Backend {
			return keyspace.New(c, keyspace.Shards(n), keyspace.Prefix(prefix), keyspace.Sweep(200*time.Millisecond))
		}
		suffix := fmt.Sprintf("-shards-%d", n)
		hs["zsetpoll"+suffix] = withoutNote(redisHarness(single, split))
		hs["zsetpoll"+suffix+"-cluster"] = withoutNote(redisHarness(cluster, split))
		hs["keyspace"+suffix+"-cluster"] = withoutNote(redisHarness(cluster, splitSwept))
	}
	for name, opts := range redissonModes() {
		open := func(c redis.UniversalClient, prefix string) backend.Backend {
			return redisson.New(c, slices.Concat(opts, []redisson.Option{redisson.NamePrefix(prefix + ":"), redisson.Sweep(200 * time.Millisecond)})...)
		}
		hs[name] = redisHarness(single, open)
		hs[name+"-cluster"] = redisHarness(cluster, open)
	}
	for _, name := range []string{"zsetpoll", "zsetpoll-shards-16-cluster", "keyspace", "keyspace-cluster", "redisson-v2", "redisson-envelope-v2"} {
		realtime := hs[name]
		realtime.Virtual = false
		hs[name+"-realtime"] = realtime
	}
	return hs
}

// redissonModes vary the codec, the format of members, and whether the index list has them: V2 and
// the index unless the name says otherwise.
func redissonModes() map[string][]redisson.Option {
	modes := make(map[string][]redisson.Option)
	for who, codec := range map[string]redisson.Codec{"redisson": redisson.Bytes, "redisson-envelope": redisson.Envelope} {
		for format, f := range map[string]redisson.MemberFormat{"-v1": redisson.V1, "-v2": redisson.V2} {
			opts := []redisson.Option{redisson.WithCodec(codec), redisson.Format(f)}
			modes[who+format] = opts
			modes[who+format+"-noindex"] = append(slices.Clone(opts), redisson.NoIndex())
		}
	}
	modes["redisson-both"] = []redisson.Option{redisson.WithCodec(redisson.Bytes), redisson.Format(redisson.Both)}
	return modes
}

// redisHarness gives each backend a prefix and a client of its own, on a shared server.
func redisHarness(dial func() redis.UniversalClient, open func(redis.UniversalClient, string) backend.Backend) conformance.Harness {
	var places sync.Map // of the backends that New made
	return conformance.Harness{
		New: func(context.Context) (backend.Backend, func(), error) {
			p := place{dial(), fmt.Sprintf("conformance-%d", prefixes.Add(1))}
			b := open(p.client, p.prefix)
			places.Store(b, p)
			return b, func() { _ = p.client.Close() }, nil
		},
		Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
			p, _ := places.Load(b)
			client := dial()
			return open(client, p.(place).prefix), func() { _ = client.Close() }, nil
		},
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			p, _ := places.Load(b)
			return keysWith(ctx, p.(place))
		},
		Virtual: true,
		Quiet:   30 * time.Millisecond,
	}
}

// withoutNote leaves out the keys in which the numbers of shards are noted: they stay until Remove.
func withoutNote(h conformance.Harness) conformance.Harness {
	leftovers := h.Leftovers
	h.Leftovers = func(ctx context.Context, b backend.Backend) ([]string, error) {
		keys, err := leftovers(ctx, b)
		return slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, "}:shards") }), err
	}
	return h
}

var prefixes atomic.Int64

type place struct {
	client redis.UniversalClient
	prefix string
}

func keysWith(ctx context.Context, p place) (keys []string, err error) {
	list := func(ctx context.Context, c *redis.Client) error {
		some, err := c.Keys(ctx, "*"+p.prefix+":*").Result()
		keys = append(keys, slices.DeleteFunc(some, redistest.Stays)...)
		return err
	}
	if c, ok := p.client.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			return list(ctx, c)
		})
		return keys, err
	}
	err = list(ctx, p.client.(*redis.Client))
	return keys, err
}
