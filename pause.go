package delayq

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// PauseOption sets the end of a pause in [Queue.PauseAll].
type PauseOption func(*backend.Pause) error

// PauseFor ends the pause that long from now, by the store's clock: more than 0, up to a hundred
// years.
func PauseFor(d time.Duration) PauseOption {
	return func(p *backend.Pause) error {
		p.For = d
		if d <= 0 || d > backend.MaxDelay {
			return backend.Invalid("PauseFor", d, fmt.Sprintf("more than 0, up to %v", backend.MaxDelay))
		}
		return nil
	}
}

// PauseUntil ends the pause at t, from 1970 to 2200, by the store's clock. A time in the past ends
// the pause at once.
func PauseUntil(t time.Time) PauseOption {
	return func(p *backend.Pause) error {
		p.Until = t
		return valid.Due(t)
	}
}

func (q *queue) PauseAll(ctx context.Context, opts ...PauseOption) error {
	var p backend.Pause
	invalid := valid.Apply(&p, opts, "pause option", "the result of PauseFor or PauseUntil")
	if invalid == nil && p.For != 0 && !p.Until.IsZero() {
		invalid = backend.Invalid("pause", valid.Described("with PauseFor and PauseUntil"), "one of them")
	}
	return q.call(ctx, Pausing, "pause all", "", invalid, func() error { return q.store.PauseAll(ctx, p) })
}

func (q *queue) ResumeAll(ctx context.Context) error {
	return q.call(ctx, Pausing, "resume all", "", nil, func() error { return q.store.ResumeAll(ctx) })
}
