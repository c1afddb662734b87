package delayq

import (
	"bufio"
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// ids makes the ids of all queues of this process.
var ids = idSource{entropy: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}

// An idSource makes ids that sort in the order in which they were made, whichever goroutines
// asked for them and wherever the clock is set meanwhile.
type idSource struct {
	mu      sync.Mutex
	ms      uint64                 // of the last id; never goes back
	entropy *ulid.MonotonicEntropy // 80 random bits a millisecond, then counted up by random steps
}

func newID() string { return ids.next(time.Now()).String() }

func (s *idSource) next(now time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ms = max(s.ms, uint64(max(now.UnixMilli(), 0)))
	id, err := ulid.New(s.ms, s.entropy)
	if err != nil { // the count ran over its 80 bits
		s.ms++
		id = ulid.MustNew(s.ms, s.entropy)
	}
	return id
}
