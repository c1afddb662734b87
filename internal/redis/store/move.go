package store

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
)

// MoveAndTake moves what is due to the list of ready messages, and leases from there. Who dies between
// the two leaves the messages in the list for the next.
func (s *Store) MoveAndTake(ctx context.Context, limit int, lease time.Duration, name string) (queue.Claim, error) {
	limit = min(limit, script.ChunkMessages)
	reply, err := s.Run(ctx, moveScript, limit)
	if err != nil {
		return queue.Claim{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 3 {
		return queue.Claim{}, fmt.Errorf("script move: unexpected reply %v", reply)
	}
	if r[2] == int64(0) {
		return queue.Claim{Now: script.US(r[0]), Next: script.MS(r[1])}, nil
	}
	if reply, err = s.Run(ctx, takeScript, limit, script.Delay(lease), name); err != nil {
		return queue.Claim{}, err
	}
	return s.claimed(ctx, reply)
}
