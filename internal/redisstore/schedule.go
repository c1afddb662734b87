package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// Schedule is as in backend.Queue.
func (s *Store) Schedule(ctx context.Context, ms []backend.Message) []error {
	size := func(m backend.Message) int { return len(m.Body) }
	return chunked(ms, size, func(part []backend.Message) []error {
		return each(ctx, s, scheduleScript, part, nil, func(args []any, m backend.Message) []any {
			return append(args, packed(m.ID), record.AppendContent(nil, m.Headers, m.Body), dueArg(m.Due), delayArg(m.Delay))
		}, oneOr(backend.ErrDuplicate))
	})
}

func packed(id string) []byte { return record.PackID(nil, id) }

// dueArg rounds a due time up to milliseconds; nothing when there is none.
func dueArg(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	ms := due.UnixMilli()
	if due.After(time.UnixMilli(ms)) {
		ms++
	}
	return strconv.FormatInt(ms, 10)
}

// delayArg rounds a delay up to microseconds.
func delayArg(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// Cancel is as in backend.Canceler.
func (s *Store) Cancel(ctx context.Context, ids []string) []error {
	return s.byID(ctx, cancelScript, ids, waited)
}

// Reschedule is as in backend.Rescheduler.
func (s *Store) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return chunked(ms, small, func(part []backend.Move) []error {
		return each(ctx, s, rescheduleScript, part, nil, func(args []any, m backend.Move) []any {
			return append(args, packed(m.ID), dueArg(m.Due), delayArg(m.Delay))
		}, waited)
	})
}
