package delayq

import (
	"cmp"
	"context"
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
		return valid.PauseFor(d)
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
	err := cmp.Or(valid.Apply(&p, opts, "pause option", "the result of PauseFor or PauseUntil"), valid.Pause(p))
	return q.call(ctx, Pausing, "pause all", "", err, func() error { return q.store.PauseAll(ctx, p) })
}

func (q *queue) ResumeAll(ctx context.Context) error {
	return q.call(ctx, Pausing, "resume all", "", nil, func() error { return q.store.ResumeAll(ctx) })
}
