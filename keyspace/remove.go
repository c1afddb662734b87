package keyspace

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
)

var _ backend.Remover = (*Backend)(nil)

// Remove is as in backend.Remover.
func (b *Backend) Remove(ctx context.Context, name string) error {
	return queue.Remove(ctx, b.queues, name)
}

// Remains is as in backend.Remover. It walks over all keys of the server.
func (b *Backend) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return queue.Remains(ctx, b.queues, queues...)
}
