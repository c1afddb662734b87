package store

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// Split notes that the queue of this name is split into n shards, more than one, and returns how many
// it has: a number that was noted before stays. From then on every method of a store of this name
// returns an error. It returns an [backend.InvalidError] where the queue has messages that are in no
// shard.
func (s *Store) Split(ctx context.Context, n int) (int, error) {
	reply, err := s.Run(ctx, splitScript, n)
	if err != nil {
		return 0, err
	}
	has, ok := reply.(int64)
	switch {
	case !ok || has == 1:
		return 0, script.Unexpected(splitScript, reply)
	case has == 0:
		return 0, backend.Invalid("number of shards", n, "1 for this queue, which has messages without shards: use another name, or let workers without Shards drain it and remove it")
	}
	return int(has), nil
}

// Join takes the note of Split away.
func (s *Store) Join(ctx context.Context) error {
	_, err := s.Run(ctx, splitScript, 1)
	return err
}
