package handle

import (
	"context"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

const (
	countEvery  = time.Second
	countWithin = 500 * time.Millisecond
)

// A counter counts the messages that a handle has pushed and acked. It adds its counts to those of
// the store once a second, while there are any.
type counter struct {
	add   func(ctx context.Context, pushed, acked int64) error // nil for a store that does not count
	clock clockwork.Clock

	adding sync.Mutex // held while the store adds, and never within mu

	mu            sync.Mutex
	pushed, acked int64
	timer         clockwork.Timer // nil when none runs
	closed        bool
}

// count adds a call's n messages, but for those that failed.
func (c *counter) count(of *int64, n int, errs []error) {
	if c.add == nil {
		return
	}
	for _, err := range errs {
		if err != nil {
			n--
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*of += int64(n)
	if c.timer == nil && !c.closed && c.pushed+c.acked > 0 {
		c.timer = c.clock.AfterFunc(countEvery, c.flush)
	}
}

// flush adds the counts to the store's. They are lost if that fails: a store that replies late may
// have counted them already.
func (c *counter) flush() {
	c.adding.Lock()
	defer c.adding.Unlock()
	c.mu.Lock()
	pushed, acked := c.pushed, c.acked
	c.pushed, c.acked, c.timer = 0, 0, nil
	c.mu.Unlock()
	if pushed+acked == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	_ = c.add(ctx, pushed, acked)
}

// close adds what is left, and nothing later.
func (c *counter) close() {
	c.mu.Lock()
	if c.closed = true; c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.flush()
}
