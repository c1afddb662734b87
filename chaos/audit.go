package chaos

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Audit counts the messages of a queue, and records what it found.
func Audit(ctx context.Context, s *Stage, look backend.Queue) (found backend.Stats, err error) {
	a := &actor{Stage: s, dice: diceOf(s.Seed, "audit")}
	a.call(ctx, callTime, Call{Op: Count}, func(ctx context.Context, c *Call) error {
		found, err = look.Stats(ctx)
		c.Count = found.Scheduled + found.Ready + found.InFlight + found.Dead + found.Quarantined
		return err
	})
	return found, err
}
