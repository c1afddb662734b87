package store

import (
	"context"
	"time"

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

// countsKept is for how long a queue's activity stays when there is none.
const countsKept = time.Hour

// Count adds to the queue's activity. A try whose reply was lost is not repeated.
func (s *Store) Count(ctx context.Context, a backend.Activity) error {
	_, err := s.counts.Once(ctx, countScript, append([]any{countsKept.Milliseconds()}, script.ActivityArguments(a)...)...)
	return err
}
