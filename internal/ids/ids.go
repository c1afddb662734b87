// Package ids makes the ids of messages that are pushed without one.
package ids

import (
	"bufio"
	cryptorand "crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// all makes the ids of all queues of this process.
var all = source{entropy: ulid.Monotonic(bufio.NewReader(cryptorand.Reader), 0)}

// A source makes ids that sort in the order in which they are made, also by several goroutines
// and when the clock is set back.
type source struct {
	mu      sync.Mutex
	ms      uint64                 // of the last id; never goes back
	entropy *ulid.MonotonicEntropy // 80 random bits a millisecond, then counted up by random steps
}

// New returns an id. It is safe for concurrent use.
func New() string { return all.next(time.Now()).String() }

func (s *source) next(now time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ms = max(s.ms, uint64(max(now.UnixMilli(), 0)))
	id, err := ulid.New(s.ms, s.entropy)
	if err != nil { // the count overflowed its 80 bits
		s.ms++
		id = ulid.MustNew(s.ms, s.entropy)
	}
	return id
}
