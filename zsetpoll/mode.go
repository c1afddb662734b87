package zsetpoll

import (
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/store"
)

// Mode is a way to claim messages that are due. All keep the same promises.
type Mode int

const (
	// Script claims a batch in one script. It is the fastest, and the default.
	Script Mode = iota

	// Arbitrate reads the due messages, and lets ZREM decide the owner of each message among all
	// workers, in one MULTI with the move to the leases. It takes messages without a script, at the
	// price of workers that lose races.
	Arbitrate

	// Mover moves due messages to a list, and takes from there: the layout that users of asynq and
	// Sidekiq know.
	Mover
)

// claimer is nil for Script.
func (m Mode) claimer() func(*store.Store) queue.Claimer {
	switch m {
	case Arbitrate:
		return func(s *store.Store) queue.Claimer { return s.Arbitrate }
	case Mover:
		return func(s *store.Store) queue.Claimer { return s.MoveAndTake }
	default:
		return nil
	}
}
