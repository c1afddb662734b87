package guard

import (
	"math/rand/v2"
	"sync"
)

// Random returns a function that returns numbers from 0 to below n, from a user's source. It makes
// one call of the source at a time.
func Random(source rand.Source) func(n int64) int64 {
	var mu sync.Mutex
	random := rand.New(source) //nolint:gosec // it spreads due times, and guards nothing
	return func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Int64N(n)
	}
}
