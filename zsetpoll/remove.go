package zsetpoll

import (
	"context"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/queue"
)

var (
	_ admin.Resharder = (*Backend)(nil)
	_ admin.Remover   = (*Backend)(nil)
	_ admin.Lister    = (*Backend)(nil)
)

// Remove is as in admin.Remover.
func (b *Backend) Remove(ctx context.Context, name string) error {
	return queue.Remove(ctx, b.queues, name)
}

// Remains is as in admin.Remover. It walks over all keys of the server.
func (b *Backend) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return queue.Remains(ctx, b.queues, queues...)
}

// Queues is as in admin.Lister. It knows the queues that were opened under this prefix, at most
// 10,000. One is listed while it is open or has messages, and for a day after that.
func (b *Backend) Queues(ctx context.Context) ([]string, error) { return b.queues.Queues(ctx) }
