package redisson

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
)

// Stats is as in backend.Queue. Messages are counted wherever they are, those that wait for
// Java included.
func (s *store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.Claims.Run(ctx, statsScript, script.StatsArguments()...)
	if err != nil {
		return backend.Stats{}, err
	}
	st, err := script.Stats(statsScript, reply)
	st.Activity = backend.UnknownActivity
	return st, err
}
