package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

// Stats is as in backend.Inspector.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.run(ctx, statsScript)
	if err != nil {
		return backend.Stats{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 5 {
		return backend.Stats{}, fmt.Errorf("script stats: unexpected reply %v", reply)
	}
	n := func(i int) int64 { v, _ := r[i].(int64); return v }
	return backend.Stats{Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), HeadDue: parseMS(r[4])}, nil
}

// parseMS reads milliseconds since 1970; the zero time for what is not after 1970.
func parseMS(reply any) time.Time {
	text, _ := reply.(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
