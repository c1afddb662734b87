package testenv

import (
	"fmt"
	"time"
)

// patience bounds every wait for a server: long, since it only matters when something is broken. A
// broker that moves the leaders of some hundred queues has needed 20 s on a busy machine.
const patience = 2 * time.Minute

// await asks until the condition is met or cannot be met any more. The condition returns nil
// when it is met; final says that an error is the last word.
func await(what string, condition func() (final bool, err error)) error {
	deadline := time.Now().Add(patience)
	for {
		final, err := condition()
		switch {
		case err == nil:
			return nil
		case final:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case time.Now().After(deadline):
			return fmt.Errorf("waiting %v for %s: %w", patience, what, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
