package httpclient

import (
	"math/rand/v2"
	"time"
)

const (
	// A server waits for a second at least, unless it drains or a proxy ends the request.
	early       = 500 * time.Millisecond
	firstRest   = 50 * time.Millisecond
	longestRest = time.Second
)

// A backoff is the pause after an early reply without messages. It doubles with each one.
type backoff struct{ pause time.Duration }

// after returns the pause after a reply that took so long. It is random within its upper half: a
// server that drains replies to all clients at once.
func (b *backoff) after(took time.Duration) time.Duration {
	if took >= early {
		b.pause = 0
		return 0
	}
	b.pause = min(max(2*b.pause, firstRest), longestRest)
	half := b.pause / 2
	return half + rand.N(half)
}
