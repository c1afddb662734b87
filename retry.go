package delayq

import (
	"math"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how long a message waits after a failure. It is called from many goroutines.
type RetryPolicy interface {
	// Delay returns the wait after the given attempt, 1 for the first, failed with err:
	// 0 to a hundred years.
	Delay(attempt int, err error) time.Duration
}

// Backoff is a [RetryPolicy] that waits longer after each failure: Base after the first, Factor
// times as long after each further one, Max at most. It then subtracts a random part, up to
// the fraction Jitter, so that messages that failed together do not come back together.
type Backoff struct {
	Base   time.Duration // more than 0
	Max    time.Duration // Base or more
	Factor float64       // 1 or more; 1 waits equally long each time
	Jitter float64       // 0 to 1
}

// Exponential returns a Backoff that doubles, with a Jitter of a half ("equal jitter" in
// Marc Brooker's comparison, "Exponential Backoff and Jitter", 2015).
func Exponential(base, limit time.Duration) Backoff {
	return Backoff{Base: base, Max: limit, Factor: 2, Jitter: 0.5}
}

// Delay implements [RetryPolicy].
func (b Backoff) Delay(attempt int, _ error) time.Duration {
	grown := float64(b.Base) * math.Pow(b.Factor, float64(attempt-1))
	d := min(grown, float64(b.Max)) // also where grown is infinite
	return time.Duration(d * (1 - b.Jitter*rand.Float64()))
}

// Delays is a [RetryPolicy] with a table: the wait after the first failure, the second, and so on.
// The last one holds for all further failures. Each is 0 to a hundred years.
type Delays []time.Duration

// Delay implements [RetryPolicy].
func (ds Delays) Delay(attempt int, _ error) time.Duration {
	return ds[max(min(attempt, len(ds)), 1)-1]
}
