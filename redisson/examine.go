package redisson

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redisqueue"
)

var _ backend.Examiner = (*Backend)(nil)

// Examine is as in backend.Examiner: each server's version, role, eviction, persistence and clock.
func (b *Backend) Examine(ctx context.Context) (backend.Examination, error) {
	return redisqueue.Examine(ctx, b.queues)
}
