package store

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// afterExpired runs a script that first gives back messages of ended leases, until all of them are
// back.
func (s *Store) afterExpired(ctx context.Context, sc *script.Script, args ...any) (any, error) {
	for {
		reply, err := s.Claims.Run(ctx, sc, args...)
		if err != nil || reply != "MORE" {
			return reply, err
		}
	}
}

// Stats is as in backend.Queue.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.afterExpired(ctx, statsScript, script.StatsArguments()...)
	if err != nil {
		return backend.Stats{}, err
	}
	return script.Stats(statsScript, reply)
}
