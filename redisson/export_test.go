package redisson

import (
	"context"
	"log/slog"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
)

// Store is a queue's store without a handle, which would tend the queue on its own.
type Store struct{ *store }

// StoreOf returns the store of a queue.
func StoreOf(b *Backend, queue string, clock clockwork.Clock, log *slog.Logger) (Store, error) {
	s, err := b.store(queue, backend.Options{Clock: clock, Logger: log})
	return Store{s}, err
}

// Claim leases up to limit messages.
func (s Store) Claim(ctx context.Context, limit int, lease time.Duration, name string) (queue.Claim, error) {
	return s.claim(ctx, limit, lease, name)
}

// Tend hands over what is due.
func (s Store) Tend(ctx context.Context) error {
	_, err := s.tend(ctx)
	return err
}
