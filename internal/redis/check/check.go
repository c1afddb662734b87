// Package check finds settings of a Redis server that may lose messages or reject them, with the
// remedy.
package check

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
)

// checkWithin bounds the time that the check adds to the first Open.
const checkWithin = 2 * time.Second

// Check warns, with the remedy, about servers that may lose messages or reject them. It never
// fails: it gives no warning about a server that does not reply.
func Check(ctx context.Context, calls *call.Group, client redis.UniversalClient, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	facts, err := call.Do(ctx, calls, func(ctx context.Context) ([]Facts, error) { return Inspect(ctx, client) })
	if ctx.Err() != nil {
		err = ctx.Err() // it only asks, so that nothing is unknown
	}
	if err != nil {
		log.DebugContext(ctx, "delayq: the start-up check could not ask the server", "err", err)
	}
	report(ctx, log, facts)
}

// report logs each finding once, with all servers that it is about: the masters of a Cluster mostly
// have the same configuration.
func report(ctx context.Context, log *slog.Logger, facts []Facts) {
	servers := make(map[Finding][]string)
	var order []Finding
	for _, f := range facts {
		for _, found := range f.Findings() {
			if servers[found] == nil {
				order = append(order, found)
			}
			servers[found] = append(servers[found], f.Server)
		}
	}
	for _, found := range order {
		slices.Sort(servers[found])
		log.Log(ctx, found.Level, "delayq: "+found.String(), "servers", strings.Join(servers[found], ", "))
	}
}

// Inspect asks each server that a client writes to: one, the masters of a Cluster, or the shards of
// a Ring. With an error it returns the facts of the servers that replied.
func Inspect(ctx context.Context, client redis.UniversalClient) ([]Facts, error) {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return inspectAll(ctx, c.ForEachMaster)
	case *redis.Ring:
		return inspectAll(ctx, c.ForEachShard)
	default:
		f, err := ask(ctx, client)
		if err != nil {
			return nil, fmt.Errorf("asking the server for its state: %w", err)
		}
		f.Server = addressOf(client)
		f.Astray = f.Clustered == Yes
		return []Facts{f}, nil
	}
}

func addressOf(client redis.UniversalClient) string {
	if c, ok := client.(*redis.Client); ok {
		return c.Options().Addr
	}
	return "the server"
}

func inspectAll(ctx context.Context, forEach func(context.Context, func(context.Context, *redis.Client) error) error) ([]Facts, error) {
	var mu sync.Mutex
	var all []Facts
	err := forEach(ctx, func(ctx context.Context, node *redis.Client) error {
		f, err := ask(ctx, node)
		if err != nil {
			return fmt.Errorf("asking %s for its state: %w", node.Options().Addr, err)
		}
		f.Server = node.Options().Addr
		mu.Lock()
		defer mu.Unlock()
		all = append(all, f)
		return nil
	})
	mu.Lock() // a client may return before its last node does
	defer mu.Unlock()
	return slices.Clone(all), err
}
