package store

import (
	"context"
	"time"

	"github.com/delayq/delayq/internal/redis/script"
)

// MoveAndTake moves due messages to the list of ready messages, and leases from there. A process
// that dies in between leaves the messages in the list for the next one.
func (s *Store) MoveAndTake(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error) {
	limit = min(limit, script.ChunkMessages)
	reply, err := s.Claims.Run(ctx, moveScript, limit)
	if err != nil {
		return script.Claim{}, err
	}
	c, r, ok := script.NewClaim(reply, 3)
	if !ok {
		return script.Claim{}, script.Unexpected(moveScript, reply)
	}
	switch r[2] {
	case int64(0):
		return c, nil
	case int64(-1):
		return c, ErrSplit
	}
	if reply, err = s.Claims.Run(ctx, takeScript, limit, script.Delay(lease), name); err != nil {
		return script.Claim{}, err
	}
	return s.claimed(ctx, reply)
}
