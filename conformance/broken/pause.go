package broken

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

var pauseFaults = []Fault{
	{Name: "ignores a pause", Rule: "pause", breaks: func(q *queue) {
		paused := false
		q.onPause(func(p *backend.Pause) { paused, *p = true, over })
		q.onStats(func(s *backend.Stats) { s.Paused = paused })
	}},
	{Name: "does not show a pause", Rule: "pause", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) { s.Paused = false })
	}},
	{Name: "pauses one handle alone", Rule: "pause", breaks: func(q *queue) {
		paused := false
		q.onPause(func(p *backend.Pause) { paused, *p = true, over })
		q.onStats(func(s *backend.Stats) { s.Paused = paused })
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			if paused {
				return forever(ctx)
			}
			return q.Queue.Receive(ctx, limit, lease)
		}
	}},
	{Name: "loses what is pushed in a pause", Rule: "pause", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			if s, err := q.Queue.Stats(ctx); err == nil && s.Paused {
				return nil
			}
			return q.Queue.Schedule(ctx, ms)
		}
	}},
	{Name: "ends a pause with a purge", Rule: "pause-stays", breaks: func(q *queue) {
		q.purge = func(ctx context.Context) (int64, error) {
			n, err := q.Queue.Purge(ctx)
			_ = q.Queue.ResumeAll(ctx)
			return n, err
		}
	}},
	{Name: "ends a pause with the handle that made it", Rule: "pause-stays", breaks: func(q *queue) {
		made := false
		q.onPause(func(*backend.Pause) { made = true })
		q.close = func() error {
			if made {
				_ = q.Queue.ResumeAll(context.Background())
			}
			return q.Queue.Close()
		}
	}},
	{Name: "ends a pause when a handle is opened", Rule: "pause-stays", breaks: func(q *queue) {
		_ = q.Queue.ResumeAll(context.Background())
	}},
	{Name: "pauses under a context that has ended", Rule: "pause-stays", breaks: func(q *queue) {
		q.pauseAll = func(ctx context.Context, p backend.Pause) error {
			return errors.Join(q.Queue.PauseAll(context.WithoutCancel(ctx), p), ctx.Err())
		}
	}},
	{Name: "shows the latest end of a pause as none", Rule: "pause-stays", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) {
			if s.PausedUntil.Equal(backend.LatestDue) {
				s.PausedUntil = time.Time{}
			}
		})
	}},
	{Name: "keeps the end of the first pause", Rule: "pause-stays", breaks: func(q *queue) {
		q.pauseAll = func(ctx context.Context, p backend.Pause) error {
			if s, err := q.Queue.Stats(ctx); err == nil && s.Paused {
				return nil
			}
			return q.Queue.PauseAll(ctx, p)
		}
	}},
	{Name: "shows a pause that ends a second later", Rule: "pause-stays", breaks: func(q *queue) {
		q.onStats(func(s *backend.Stats) {
			if !s.PausedUntil.IsZero() {
				s.PausedUntil = s.PausedUntil.Add(time.Second)
			}
		})
	}},
	{Name: "returns before the queue is paused", Rule: "pause-race", breaks: func(q *queue) {
		q.pauseAll = func(ctx context.Context, p backend.Pause) error {
			go func() {
				time.Sleep(time.Millisecond)
				_ = q.Queue.PauseAll(ctx, p)
			}()
			return nil
		}
	}},
	{Name: "wakes nobody when a pause ends", Rule: "pause-ends", breaks: func(q *queue) {
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			if s, err := q.Queue.Stats(ctx); err == nil && s.Paused {
				return forever(ctx)
			}
			return q.Queue.Receive(ctx, limit, lease)
		}
	}},
	{Name: "ends a pause by one that has passed when the next Receive begins", Rule: "pause-ends", breaks: func(q *queue) {
		ended := &q.shared().extra
		q.pauseAll = func(ctx context.Context, p backend.Pause) error {
			if !p.Until.IsZero() && p.Until.Before(q.clock().Now()) {
				ended.Store(1)
				return nil
			}
			return q.Queue.PauseAll(ctx, p)
		}
		q.receive = func(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
			if ended.Swap(0) == 1 {
				_ = q.Queue.ResumeAll(ctx)
			}
			return q.Queue.Receive(ctx, limit, lease)
		}
	}},
	{Name: "ends a pause early", Rule: "pause-ends", breaks: func(q *queue) {
		q.onPause(func(p *backend.Pause) { p.For -= p.For / 10 })
	}},
}

// over is a pause that has ended.
var over = backend.Pause{Until: backend.EarliestDue}

func (q *queue) onPause(change func(*backend.Pause)) {
	q.pauseAll = func(ctx context.Context, p backend.Pause) error {
		return q.Queue.PauseAll(ctx, changed(q, []backend.Pause{p}, change)[0])
	}
}
