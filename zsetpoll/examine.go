package zsetpoll

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
)

var _ backend.Examiner = (*Backend)(nil)

// Examine is as in backend.Examiner: each server's version, role, eviction, persistence and clock.
func (b *Backend) Examine(ctx context.Context) (backend.Examination, error) {
	return queue.Examine(ctx, b.queues)
}
