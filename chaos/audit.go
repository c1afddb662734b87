package chaos

import (
	"context"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// Audit calls Stats on a queue, and records what it returned.
func Audit(ctx context.Context, e *Env, q backend.Queue) (found backend.Stats, err error) {
	c := &client{Env: e, dice: diceOf(e.Seed, "audit")}
	c.call(ctx, callTime, judge.Call{Op: judge.Stats}, func(ctx context.Context, call *judge.Call) error {
		found, err = q.Stats(ctx)
		call.Count = found.Scheduled + found.Ready + found.InFlight + found.Dead + found.Quarantined
		return err
	})
	return found, err
}
