package redisstore

import (
	"context"
	"time"
)

// Arbitrate reads what is due.
func (s *Store) Arbitrate(ctx context.Context, limit int, lease time.Duration, name string) (Claim, error) {
	return s.Claim(ctx, limit, lease, name)
}

// MoveAndTake moves.
func (s *Store) MoveAndTake(ctx context.Context, limit int, lease time.Duration, name string) (Claim, error) {
	return s.Claim(ctx, limit, lease, name)
}
