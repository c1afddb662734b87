package store

import (
	"context"
	"errors"
	"slices"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// Schedule is as in backend.Queue.
func (s *Store) Schedule(ctx context.Context, ms []backend.Message) []error {
	if slices.ContainsFunc(ms, replaces) {
		return s.inRuns(ctx, ms)
	}
	return s.push(ctx, ms)
}

// push stores messages without Replace.
func (s *Store) push(ctx context.Context, ms []backend.Message) []error {
	size := func(m backend.Message) int { return len(m.Body) }
	return script.Chunked(ms, size, func(part []backend.Message) []error {
		reply, err := s.pushes.Run(ctx, scheduleScript, scheduleArgs(part)...)
		confirmed := error(nil)
		if errors.Is(err, backend.ErrUnconfirmed) {
			confirmed, err = err, nil
		}
		reply = s.pushes.Heard(reply)
		if err == nil && reply == script.AllDone && confirmed != nil {
			return backend.FailAll(len(part), confirmed)
		}
		return script.Outcomes(scheduleScript, len(part), reply, err, func(_ int, reply any) error {
			err := stored(reply)
			if confirmed != nil && (err == nil || errors.Is(err, backend.ErrDuplicate)) {
				return confirmed // pushed again, it waits again; one that was refused has nothing to wait for
			}
			return err
		})
	})
}

func packed(id string) []byte { return record.PackID(nil, id) }

// Cancel is as in backend.Queue.
func (s *Store) Cancel(ctx context.Context, ids []string) []error {
	return s.byID(ctx, cancelScript, ids, script.Waited)
}

// Reschedule is as in backend.Queue.
func (s *Store) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return script.Chunked(ms, script.Small, func(part []backend.Move) []error {
		return script.Each(ctx, &s.Runner, rescheduleScript, part, nil, func(args []any, m backend.Move) []any {
			return append(args, packed(m.ID), script.Due(m.Due), script.Delay(m.Delay))
		}, script.Waited)
	})
}
