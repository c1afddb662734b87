package script

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// StatsArguments returns the arguments of a script that counts messages: the bounds of a histogram
// of what falls due, in ms.
func StatsArguments() []any {
	bounds := backend.DueBounds()
	args := make([]any, len(bounds))
	for i, b := range bounds {
		args[i] = b.Milliseconds()
	}
	return args
}

// Stats reads the reply of such a script: scheduled, ready, in flight, dead, quarantined, the
// head's due time in ms or -1, how many ms ago that was, how many messages fall due up to each
// bound and after the one before, the end of the pause, and how many were pushed and acked.
func Stats(sc *Script, reply any) (backend.Stats, error) {
	r, ok := reply.([]any)
	if !ok || len(r) != 9+len(backend.DueHistogram{}) {
		return backend.Stats{}, Unexpected(sc, reply)
	}
	n := func(i int) int64 { return Int(r[i]) }
	s := backend.Stats{
		Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), Quarantined: n(4),
		HeadDue: MSOrNone(r[5]), OldestReady: time.Duration(n(6)) * time.Millisecond,
	}
	s.Paused, s.PausedUntil = PauseState(r[len(r)-3])
	s.Pushed, s.Acked = n(len(r)-2), n(len(r)-1)
	later := s.Scheduled
	last := len(s.Due) - 1
	for i := range last {
		s.Due[i] = min(max(n(7+i), 0), later)
		later -= s.Due[i]
	}
	s.Due[last] = later
	return s, nil
}
