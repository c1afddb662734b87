package redisstore

import (
	"context"
	"fmt"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redisscript"
)

// caughtUp runs a script that first gives back what ended leases held, until all of that is back.
func (s *Store) caughtUp(ctx context.Context, sc *redisscript.Script, args ...any) (any, error) {
	for {
		reply, err := s.Run(ctx, sc, args...)
		if err != nil || reply != "MORE" {
			return reply, err
		}
	}
}

// Stats is as in backend.Queue.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.caughtUp(ctx, statsScript)
	if err != nil {
		return backend.Stats{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 5 {
		return backend.Stats{}, fmt.Errorf("script stats: unexpected reply %v", reply)
	}
	n := func(i int) int64 { v, _ := r[i].(int64); return v }
	return backend.Stats{Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), HeadDue: redisscript.MSOrNone(r[4])}, nil
}
