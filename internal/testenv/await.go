package testenv

import (
	"fmt"
	"time"
)

// patience bounds every wait for a server. It is long, since it only matters when something is
// broken: on a busy machine, a broker has needed 20 s to move the leaders of some hundred queues.
const patience = 2 * time.Minute

// await polls until the condition is met, or cannot be met any more. The condition returns nil when
// it is met, and final with an error that no further poll can change.
func await(what string, condition func() (final bool, err error)) error {
	return awaitFor(patience, what, condition)
}

func awaitFor(limit time.Duration, what string, condition func() (final bool, err error)) error {
	deadline := time.Now().Add(limit)
	for {
		final, err := condition()
		switch {
		case err == nil:
			return nil
		case final:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case time.Now().After(deadline):
			return fmt.Errorf("waiting %v for %s: %w", limit, what, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
