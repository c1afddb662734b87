package keyspace

import (
	"context"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redisqueue"
)

var _ admin.Remover = (*Backend)(nil)

// Remove is as in admin.Remover.
func (b *Backend) Remove(ctx context.Context, queue string) error {
	return redisqueue.Remove(ctx, b.store, queue)
}

// Remains is as in admin.Remover. It walks over all keys of the server.
func (b *Backend) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return redisqueue.Remains(ctx, b.store, queues...)
}
