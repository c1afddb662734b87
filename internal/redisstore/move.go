package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/internal/redisqueue"
	"github.com/delayq/delayq/internal/redisscript"
)

// MoveAndTake moves what is due to the list of ready messages, and leases from there. Who dies between
// the two leaves the messages in the list for the next.
func (s *Store) MoveAndTake(ctx context.Context, limit int, lease time.Duration, name string) (redisqueue.Claim, error) {
	limit = min(limit, redisscript.ChunkMessages)
	reply, err := s.Run(ctx, moveScript, limit)
	if err != nil {
		return redisqueue.Claim{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 3 {
		return redisqueue.Claim{}, fmt.Errorf("script move: unexpected reply %v", reply)
	}
	if r[2] == int64(0) {
		return redisqueue.Claim{Now: redisscript.US(r[0]), Next: redisscript.MS(r[1])}, nil
	}
	if reply, err = s.Run(ctx, takeScript, limit, redisscript.Delay(lease), name); err != nil {
		return redisqueue.Claim{}, err
	}
	return s.claimed(ctx, reply)
}
