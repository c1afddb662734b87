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
		reply, err := s.Run(ctx, sc, args...)
		if err != nil || reply != "MORE" {
			return reply, err
		}
	}
}

// Stats is as in backend.Queue.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.afterExpired(ctx, statsScript)
	if err != nil {
		return backend.Stats{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 5 {
		return backend.Stats{}, script.Unexpected(statsScript, reply)
	}
	n := func(i int) int64 { v, _ := r[i].(int64); return v }
	return backend.Stats{Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), HeadDue: script.MSOrNone(r[4])}, nil
}
