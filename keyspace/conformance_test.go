package keyspace_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
)

func TestConformance(t *testing.T) {
	srv, cluster := server(t), testenv.RedisCluster(t)
	single := func() redis.UniversalClient { return redis.NewClient(srv.Options()) }
	many := func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	}
	for name, h := range map[string]conformance.Harness{
		"virtual":          harness(single),
		"realtime":         harness(single, keyspace.Sweep(250*time.Millisecond)),
		"realtime-default": harness(single),
		"cluster-virtual":  harness(many),
		"cluster-realtime": harness(many, keyspace.Sweep(250*time.Millisecond)),
	} {
		h.Virtual = name == "virtual" || name == "cluster-virtual"
		t.Run(name, func(t *testing.T) { conformance.Run(t, h) })
	}
}

var tries atomic.Int64

// harness gives each backend a prefix and a client of its own.
func harness(connect func() redis.UniversalClient, opts ...keyspace.Option) conformance.Harness {
	attach := func(prefix string) (*keyspace.Backend, func()) {
		c := connect()
		return keyspace.New(c, append([]keyspace.Option{keyspace.Prefix(prefix)}, opts...)...), func() { _ = c.Close() }
	}
	return conformance.Harness{
		New: func(context.Context) (backend.Backend, func(), error) {
			b, end := attach(numbered("try", int(tries.Add(1))))
			return b, end, nil
		},
		Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
			second, end := attach(b.(*keyspace.Backend).Config.Prefix)
			return second, end, nil
		},
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			c := connect()
			defer func() { _ = c.Close() }()
			return keys(ctx, c, b.(*keyspace.Backend).Config.Prefix+":*")
		},
	}
}

func keys(ctx context.Context, client redis.UniversalClient, pattern string) ([]string, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return client.Keys(ctx, pattern).Result()
	}
	found := make(chan []string, 100)
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, m *redis.Client) error {
		ks, err := m.Keys(ctx, pattern).Result()
		found <- ks
		return err
	})
	close(found)
	var all []string
	for ks := range found {
		all = append(all, ks...)
	}
	return all, errors.Join(err)
}
