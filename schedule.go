package delayq

import (
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/guard"
)

// Schedule says when something is to happen again, for [Queue.Repeat]. [Every] and [Cron] make them. It is called from
// many goroutines.
type Schedule interface {
	// Next returns the first occurrence after a time, or the zero time when there is none any more. An occurrence is
	// one whatever the time asked about, in every process: each finds the same ones.
	Next(after time.Time) time.Time
}

// Every returns a schedule whose occurrences are a time apart, 1 s to 400 days. They are the multiples of d since 1970, UTC, so
// that all processes agree on them: Every(time.Hour) is on the hour, wherever and whenever a process begins.
func Every(d time.Duration) Schedule { return every(d) }

type every time.Duration

func (e every) Next(after time.Time) time.Time {
	d := time.Duration(e)
	if e.validate() != nil {
		return time.Time{}
	}
	// Truncate counts from the year 1. A difference of times would end 292 years from 1970.
	epoch := time.Unix(0, 0)
	shift := epoch.Sub(epoch.Truncate(d))
	next := after.Add(-shift).Truncate(d).Add(shift).Add(d).UTC()
	if !next.After(after) {
		return time.Time{}
	}
	return next
}

func (e every) validate() error {
	if d := time.Duration(e); d < time.Second || d > backend.MaxUnique {
		return backend.Invalid("Every", d, fmt.Sprintf("%v to %v", time.Second, backend.MaxUnique))
	}
	return nil
}

func validSchedule(s Schedule) error {
	if s == nil {
		return backend.Invalid("schedule", described("nil"), "one that Every or Cron returns")
	}
	if v, ok := s.(interface{ validate() error }); ok {
		return v.validate()
	}
	return nil
}

// nextAfter asks a schedule, which may be somebody else's.
func nextAfter(s Schedule, after time.Time) (time.Time, error) {
	var next time.Time
	if err := guard.Call("schedule", func() { next = s.Next(after) }); err != nil || next.IsZero() {
		return next, err
	}
	if !next.After(after) {
		return next, backend.Invalid("occurrence", next, "one after "+after.Format(time.RFC3339Nano))
	}
	return next, validDue(next)
}
