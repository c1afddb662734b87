package redisson

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// Stats is as in backend.Queue. Messages are counted wherever they are, those that wait for
// Java included.
func (s *store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.Run(ctx, statsScript)
	if err != nil {
		return backend.Stats{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 6 {
		return backend.Stats{}, script.Unexpected(statsScript, reply)
	}
	n := func(i int) int64 { return script.Int(r[i]) }
	return backend.Stats{
		Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), Quarantined: n(4), HeadDue: script.MSOrNone(r[5]),
	}, nil
}
