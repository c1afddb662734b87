package handle

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

// While the handle is open, its methods are those of its messages.

// whileOpen calls do for n messages, unless there are none.
func (q *Queue) whileOpen(ctx context.Context, n int, do func() []error) []error {
	if err := q.open(ctx); err != nil {
		return backend.FailAll(n, err)
	}
	if n == 0 {
		return nil
	}
	return do()
}

// Schedule is as in backend.Queue.
func (q *Queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := q.whileOpen(ctx, len(ms), func() []error { return q.Messages.Schedule(ctx, ms) })
	q.count.pushed(len(ms), errs)
	return errs
}

// Ack is as in backend.Queue.
func (q *Queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	errs := q.whileOpen(ctx, len(ls), func() []error { return q.Messages.Ack(ctx, ls) })
	q.count.acked(len(ls), errs)
	return errs
}

// Nack is as in backend.Queue.
func (q *Queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.whileOpen(ctx, len(rs), func() []error { return q.Messages.Nack(ctx, rs) })
}

// Extend is as in backend.Queue.
func (q *Queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) (ends []time.Time, errs []error) {
	ends = make([]time.Time, len(ls))
	errs = q.whileOpen(ctx, len(ls), func() (errs []error) {
		ends, errs = q.Messages.Extend(ctx, ls, lease)
		return errs
	})
	return ends, errs
}

// Dead is as in backend.Queue.
func (q *Queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.whileOpen(ctx, len(bs), func() []error { return q.Messages.Dead(ctx, bs) })
}

// Cancel is as in backend.Queue.
func (q *Queue) Cancel(ctx context.Context, ids []string) []error {
	return q.whileOpen(ctx, len(ids), func() []error { return q.Messages.Cancel(ctx, ids) })
}

// Reschedule is as in backend.Queue.
func (q *Queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.whileOpen(ctx, len(ms), func() []error { return q.Messages.Reschedule(ctx, ms) })
}

// Redrive is as in backend.Queue.
func (q *Queue) Redrive(ctx context.Context, ids []string) []error {
	return q.whileOpen(ctx, len(ids), func() []error { return q.Messages.Redrive(ctx, ids) })
}

// DeleteDead is as in backend.Queue.
func (q *Queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.whileOpen(ctx, len(ids), func() []error { return q.Messages.DeleteDead(ctx, ids) })
}

// Get is as in backend.Queue.
func (q *Queue) Get(ctx context.Context, ids []string) (infos []backend.MessageInfo, errs []error) {
	infos = make([]backend.MessageInfo, len(ids))
	errs = q.whileOpen(ctx, len(ids), func() (errs []error) {
		infos, errs = q.Messages.Get(ctx, ids)
		return errs
	})
	return infos, errs
}

// TrimDead is as in backend.Queue.
func (q *Queue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	if err := q.open(ctx); err != nil {
		return 0, false, err
	}
	return q.Messages.TrimDead(ctx, r)
}

// ListDead is as in backend.Queue.
func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	if err := q.open(ctx); err != nil {
		return nil, "", err
	}
	return q.Messages.ListDead(ctx, cursor, limit)
}

// ListDeadIDs is as in backend.Queue.
func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	if err := q.open(ctx); err != nil {
		return nil, "", err
	}
	return q.Messages.ListDeadIDs(ctx, cursor, limit)
}

// Stats is as in backend.Queue.
func (q *Queue) Stats(ctx context.Context) (backend.Stats, error) {
	if err := q.open(ctx); err != nil {
		return backend.Stats{}, err
	}
	return q.Messages.Stats(ctx)
}

// Peek is as in backend.Queue.
func (q *Queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	if err := q.open(ctx); err != nil {
		return nil, "", err
	}
	return q.Messages.Peek(ctx, cursor, limit)
}

// Purge is as in backend.Queue.
func (q *Queue) Purge(ctx context.Context) (int64, error) {
	if err := q.open(ctx); err != nil {
		return 0, err
	}
	return q.Messages.Purge(ctx)
}

// PauseAll is as in backend.Queue.
func (q *Queue) PauseAll(ctx context.Context, p backend.Pause) error {
	if err := q.open(ctx); err != nil {
		return err
	}
	return q.Messages.PauseAll(ctx, p)
}

// ResumeAll is as in backend.Queue.
func (q *Queue) ResumeAll(ctx context.Context) error {
	if err := q.open(ctx); err != nil {
		return err
	}
	return q.Messages.ResumeAll(ctx)
}
