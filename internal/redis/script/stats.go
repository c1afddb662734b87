package script

import (
	"strconv"
	"strings"
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
// bound and after the one before, the end of the pause, and the activity.
func Stats(sc *Script, reply any) (backend.Stats, error) {
	r, ok := reply.([]any)
	if !ok || len(r) != 8+len(backend.DueHistogram{}) {
		return backend.Stats{}, Unexpected(sc, reply)
	}
	n := func(i int) int64 { return Int(r[i]) }
	s := backend.Stats{
		Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), Quarantined: n(4),
		HeadDue: MSOrNone(r[5]), OldestReady: time.Duration(n(6)) * time.Millisecond,
	}
	s.Paused, s.PausedUntil = PauseState(r[len(r)-2])
	s.Activity = activity(r[len(r)-1])
	later := s.Scheduled
	last := len(s.Due) - 1
	for i := range last {
		s.Due[i] = min(max(n(7+i), 0), later)
		later -= s.Due[i]
	}
	s.Due[last] = later
	return s, nil
}

// The fields of a queue's activity in Redis. One of late has the index of its interval behind it.
const (
	fieldPushed = "pushed"
	fieldAcked  = "acked"
	fieldLate   = "late"
)

// ActivityArguments returns pairs of a field and a number, for those that are not 0.
func ActivityArguments(a backend.Activity) (pairs []any) {
	add := func(field string, n int64) {
		if n != 0 {
			pairs = append(pairs, field, n)
		}
	}
	add(fieldPushed, a.Pushed)
	add(fieldAcked, a.Acked)
	for i, n := range a.Lateness {
		add(fieldLate+strconv.Itoa(i), n)
	}
	return pairs
}

// activity reads such pairs. Fields that it does not know are of a newer release. What is no count is 0.
func activity(reply any) (a backend.Activity) {
	pairs, _ := reply.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		field, _ := pairs[i].(string)
		n := max(Int(pairs[i+1]), 0)
		switch field {
		case fieldPushed:
			a.Pushed = n
		case fieldAcked:
			a.Acked = n
		default:
			late, isLate := strings.CutPrefix(field, fieldLate)
			if j, err := strconv.Atoi(late); isLate && err == nil && j >= 0 && j < len(a.Lateness) {
				a.Lateness[j] = n
			}
		}
	}
	return a
}
