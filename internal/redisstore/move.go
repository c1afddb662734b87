package redisstore

import (
	"context"
	"fmt"
	"time"
)

// MoveAndTake moves what is due to the list of ready messages, and leases from there. Who dies between
// the two leaves the messages in the list for the next.
func (s *Store) MoveAndTake(ctx context.Context, limit int, lease time.Duration, name string) (Claim, error) {
	limit = min(limit, chunkMessages)
	reply, err := s.run(ctx, moveScript, limit)
	if err != nil {
		return Claim{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 3 {
		return Claim{}, fmt.Errorf("script move: unexpected reply %v", reply)
	}
	if r[2] == int64(0) {
		return Claim{Now: parseUS(r[0]), Next: parseMS(r[1])}, nil
	}
	if reply, err = s.run(ctx, takeScript, limit, delayArg(lease), name); err != nil {
		return Claim{}, err
	}
	return parseClaim(reply)
}
