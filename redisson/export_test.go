package redisson

import (
	"context"
	"log/slog"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// Store is a queue's store without a handle, which would maintain the queue by itself.
type Store struct{ *store }

// StoreOf returns the store of a queue.
func StoreOf(b *Backend, queue string, clock clockwork.Clock, log *slog.Logger) (Store, error) {
	s, err := b.store(queue, backend.Options{Clock: clock, Logger: log})
	return Store{s}, err
}

// Claim leases up to limit messages.
func (s Store) Claim(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error) {
	return s.claim(ctx, limit, lease, name)
}

// Maintain hands due messages over to Java.
func (s Store) Maintain(ctx context.Context) error {
	_, err := s.maintain(ctx)
	return err
}

// NamesOf returns the names of a queue's destination, sorted set, index list and channel.
func NamesOf(queue string) [4]string {
	n := namesOf(queue)
	return [4]string{n.destination, n.timeouts, n.index, n.channel}
}
