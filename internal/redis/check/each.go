package check

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Each calls do for the same servers as [Inspect], one after the other. It goes on after an error.
func Each(ctx context.Context, client redis.UniversalClient, do func(ctx context.Context, server string, c redis.Cmdable) error) error {
	var mu sync.Mutex
	var errs []error
	one := func(ctx context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		if err := do(ctx, node.Options().Addr, node); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", node.Options().Addr, err))
		}
		return nil
	}
	var err error
	switch c := client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, one)
	case *redis.Ring:
		err = c.ForEachShard(ctx, one)
	default:
		return do(ctx, addressOf(client), client)
	}
	mu.Lock() // a client may return before its last node does
	defer mu.Unlock()
	return errors.Join(append(errs, err)...)
}
