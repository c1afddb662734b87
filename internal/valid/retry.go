package valid

import (
	"math"
	"time"

	"github.com/delayq/delayq/backend"
)

// Backoff checks the fields of a Backoff.
func Backoff(base, limit time.Duration, factor, jitter float64) error {
	switch {
	case base <= 0 || base > backend.MaxDelay:
		return backend.Invalid("Backoff.Base", base, "more than 0, up to a hundred years")
	case limit < base || limit > backend.MaxDelay:
		return backend.Invalid("Backoff.Max", limit, "Base or more, up to a hundred years")
	case !(factor >= 1) || math.IsInf(factor, 1):
		return backend.Invalid("Backoff.Factor", factor, "a finite number, 1 or more")
	case !(jitter >= 0 && jitter <= 1):
		return backend.Invalid("Backoff.Jitter", jitter, "0 to 1")
	}
	return nil
}

// Delays checks a table of delays.
func Delays(ds []time.Duration) error {
	if len(ds) == 0 {
		return backend.Invalid("Delays", Described("none"), "at least one delay")
	}
	for _, d := range ds {
		if d < 0 || d > backend.MaxDelay {
			return backend.Invalid("Delays", d, "0 to a hundred years")
		}
	}
	return nil
}
