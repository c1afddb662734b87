package zsetpoll

import (
	"context"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/queue"
)

var (
	_ admin.Examiner      = (*Backend)(nil)
	_ admin.QueueExaminer = (*Backend)(nil)
)

// ExamineQueue is as in admin.QueueExaminer: whether the queue is paused.
func (b *Backend) ExamineQueue(ctx context.Context, name string) ([]admin.Finding, error) {
	return queue.ExamineQueue(ctx, b.queues, name)
}

// Examine is as in admin.Examiner: each server's version, role, eviction, persistence and clock.
func (b *Backend) Examine(ctx context.Context) (admin.Examination, error) {
	return queue.Examine(ctx, b.queues)
}
