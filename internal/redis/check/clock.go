package check

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend/admin"
)

// readClocks reads the clock of each server.
func readClocks(ctx context.Context, client redis.UniversalClient) (all []admin.ClockDifference, err error) {
	err = Each(ctx, client, func(ctx context.Context, server string, c redis.Cmdable) error {
		d, err := clockOf(ctx, c)
		if err != nil {
			return fmt.Errorf("reading the server's clock: %w", err)
		}
		d.Server = server
		all = append(all, d)
		return nil
	})
	return all, err
}

// readings is how often a clock is read. The quickest reply is the most certain one.
const readings = 7

func clockOf(ctx context.Context, c redis.Cmdable) (best admin.ClockDifference, err error) {
	for i := range readings {
		began := time.Now()
		there, err := c.Time(ctx).Result()
		if err != nil {
			return best, err
		}
		took := time.Since(began)
		if within := (took + 1) / 2; i == 0 || within < best.Within {
			best = admin.ClockDifference{Ahead: there.Sub(began.Add(took / 2)), Within: within}
		}
	}
	best.Within += time.Microsecond // to which the server tells its time
	best.Ahead, best.Within = best.Ahead.Round(time.Microsecond), best.Within.Round(time.Microsecond)
	return best, nil
}
