// Package schedule pushes messages again and again: every hour, or at half past six on working
// days. A [Schedule] says when, and [Repeat] pushes the messages.
//
//	s, err := schedule.CronIn("30 6 * * MON-FRI", berlin)
//	err = schedule.Repeat(ctx, q, "report", s, body)
//
// Each process of a service may run the same Repeat. Each occurrence is one message all the same.
package schedule

import (
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/valid"
)

// Schedule says when messages are due. [Every], [Cron] and [CronIn] return one. It is called from
// many goroutines.
type Schedule interface {
	// Next returns the first occurrence after a time, or the zero time when there is none. The
	// occurrences are the same in every process, and do not depend on the time given.
	Next(after time.Time) time.Time
}

// Every returns a schedule whose occurrences are d apart, 1 s to 400 days. They are the multiples
// of d since 1970, UTC, so that all processes agree on them: Every(time.Hour) is on the hour. For
// any other d there is no occurrence, and [Repeat] returns [delayq.ErrInvalid].
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
	if e, ok := s.(every); ok {
		return e.validate()
	}
	return valid.Given("schedule", s, "one that Every or Cron returns")
}

// nextAfter calls a schedule that the user may have written.
func nextAfter(s Schedule, after time.Time) (time.Time, error) {
	var next time.Time
	if err := guard.Call("schedule", func() { next = s.Next(after) }); err != nil || next.IsZero() {
		return next, err
	}
	if !next.After(after) {
		return next, backend.Invalid("occurrence", next, "one after "+after.Format(time.RFC3339Nano))
	}
	return next, nil
}

func opError(op, queue, id string, err error) error {
	if err == nil {
		return nil
	}
	return &delayq.OpError{Op: op, Queue: queue, ID: id, Err: err}
}
