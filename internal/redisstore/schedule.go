package redisstore

import (
	"context"
	"slices"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redisscript"
)

// Schedule is as in backend.Queue.
func (s *Store) Schedule(ctx context.Context, ms []backend.Message) []error {
	size := func(m backend.Message) int { return len(m.Body) }
	return redisscript.Chunked(ms, size, func(part []backend.Message) []error {
		fields := fieldsOf(part)
		return redisscript.Each(ctx, s.pushes, scheduleScript, part, []any{fields}, func(args []any, m backend.Message) []any {
			args = append(args, packed(m.ID), record.AppendContent(nil, m.Headers, m.Body), redisscript.Due(m.Due), redisscript.Delay(m.Delay))
			if fields == fieldsUnique {
				args = append(args, redisscript.Delay(m.UniqueFor))
			}
			return args
		}, redisscript.OneOr(backend.ErrDuplicate))
	})
}

// How many arguments a message has: one more where any of the call's has UniqueFor.
const (
	fieldsPlain  = 4
	fieldsUnique = 5
)

func fieldsOf(ms []backend.Message) int {
	if slices.ContainsFunc(ms, func(m backend.Message) bool { return m.UniqueFor > 0 }) {
		return fieldsUnique
	}
	return fieldsPlain
}

func packed(id string) []byte { return record.PackID(nil, id) }

// Cancel is as in backend.Canceler.
func (s *Store) Cancel(ctx context.Context, ids []string) []error {
	return s.byID(ctx, cancelScript, ids, redisscript.Waited)
}

// Reschedule is as in backend.Rescheduler.
func (s *Store) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return redisscript.Chunked(ms, redisscript.Small, func(part []backend.Move) []error {
		return redisscript.Each(ctx, &s.Runner, rescheduleScript, part, nil, func(args []any, m backend.Move) []any {
			return append(args, packed(m.ID), redisscript.Due(m.Due), redisscript.Delay(m.Delay))
		}, redisscript.Waited)
	})
}
