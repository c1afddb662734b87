package redisson

import (
	"context"
	"slices"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/queue"
)

var (
	_ admin.Remover = (*Backend)(nil)
	_ admin.Lister  = (*Backend)(nil)
)

// Remove is as in admin.Remover.
func (b *Backend) Remove(ctx context.Context, name string) error {
	return queue.Remove(ctx, b.queues, name)
}

// Remains is as in admin.Remover. It walks over all keys of the server.
func (b *Backend) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return queue.Remains(ctx, b.queues, queues...)
}

// keyOf knows a key by its name alone, so that keys of programs that share the queue's hash tag are
// none.
func (b *Backend) keyOf(key, queue string) bool {
	return slices.Contains(namesOf(b.setup.prefix+queue).allKeys(), key)
}

// Queues is as in admin.Lister. It knows the queues that this package opened under this prefix, at
// most 10,000, and none that only Java uses. One is listed while it is open or has messages, and
// for a day after that.
func (b *Backend) Queues(ctx context.Context) ([]string, error) { return b.queues.Queues(ctx) }
