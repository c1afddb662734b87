package delayq

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/trim"
	"github.com/delayq/delayq/internal/valid"
)

// What [DeadLetterRetention] keeps unless it is given. asynq keeps 90 days and 10,000.
const (
	DefaultDeadLetterAge   = 90 * 24 * time.Hour
	DefaultDeadLetterCount = 100_000
)

// DeadLetterRetention sets which dead letters the queue keeps: those that died less than maxAge
// ago, by the store's clock, and the maxCount youngest. The others are deleted. 0 is no bound; up
// to a hundred years and 2^30 letters are allowed. The default is [DefaultDeadLetterAge] and
// [DefaultDeadLetterCount].
//
// Each process deletes by its own retention, so that the strictest one counts: give all the same.
// It looks some seconds after New or Open, then every ten minutes, and at once when it has itself
// made 1 % of maxCount dead letters, and ten at least; so the count may be exceeded by as many for
// each process. The store deletes in steps that take a few milliseconds. Without the feature
// [Redriving] nothing is deleted. The steps run by the process's clock, whatever [WithClock] says.
func DeadLetterRetention(maxAge time.Duration, maxCount int) Option {
	return func(o *options) error {
		o.retention = backend.Retention{MaxAge: maxAge, MaxCount: maxCount}
		return valid.Retention("DeadLetterRetention", o.retention)
	}
}

// Trim deletes the dead letters that died maxAge ago or longer, by the store's clock, and the
// oldest of more than maxCount; 0 is no bound, and one bound is needed. It returns how many it
// deleted, also when ctx ends it or the store fails. [DeadLetterRetention] does so all the time.
func (l DeadLetters) Trim(ctx context.Context, maxAge time.Duration, maxCount int) (n int, err error) {
	if err := l.check("trim dead"); err != nil {
		return 0, err
	}
	keep := backend.Retention{MaxAge: maxAge, MaxCount: maxCount}
	invalid := valid.Retention("Trim", keep)
	if keep == (backend.Retention{}) {
		invalid = backend.Invalid("Trim", valid.Described("without a bound"), "an age, a count or both")
	}
	err = l.q.call(ctx, Redriving, "trim dead", "", invalid, func() error {
		n, err = trim.All(ctx, l.q.trimDead, keep)
		return err
	})
	return n, err
}

func (q *queue) trimDead(ctx context.Context, keep backend.Retention) (removed int, more bool, err error) {
	removed, more, err = q.store.TrimDead(ctx, keep)
	q.telemetry.Trimmed(ctx, removed)
	return removed, more, err
}
