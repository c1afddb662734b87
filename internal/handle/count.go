package handle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// countWithin bounds one addition: the disk of a busy machine may take seconds.
const (
	countEvery  = time.Second
	countWithin = 10 * time.Second
)

// A counter counts what a handle does. It adds its counts to those of the store once a second, while
// there are any.
type counter struct {
	add   func(ctx context.Context, a backend.Activity) error // nil for a store that does not count
	clock clockwork.Clock

	life   context.Context //nolint:containedctx // ends with Close: a timer adds the counts
	end    context.CancelFunc
	adding chan struct{} // holds one while the store adds

	mu     sync.Mutex
	counts backend.Activity
	timer  clockwork.Timer // nil when none runs
	closed bool
}

func newCounter(add func(context.Context, backend.Activity) error, clock clockwork.Clock) *counter {
	c := &counter{add: add, clock: clock, adding: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// pushed counts a call's n messages, but for those that failed.
func (c *counter) pushed(n int, errs []error) {
	c.count(func(a *backend.Activity) { a.Pushed += succeeded(n, errs) })
}

// acked counts a call's n messages, but for those that failed.
func (c *counter) acked(n int, errs []error) {
	c.count(func(a *backend.Activity) { a.Acked += succeeded(n, errs) })
}

func succeeded(n int, errs []error) int64 {
	for _, err := range errs {
		if err != nil {
			n--
		}
	}
	return int64(n)
}

// handedOut counts how late messages were leased that nobody had before. They were leased when the
// whole of their leases was ahead.
func (c *counter) handedOut(ds []backend.Delivery, lease time.Duration) {
	c.count(func(a *backend.Activity) {
		for i := range ds {
			if ds[i].Attempt == 1 {
				a.Lateness.Add(ds[i].Until.Sub(ds[i].Due) - lease)
			}
		}
	})
}

func (c *counter) count(add func(*backend.Activity)) {
	if c.add == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.counts)
	if c.timer == nil && !c.closed && c.counts != (backend.Activity{}) {
		c.timer = c.clock.AfterFunc(countEvery, func() { c.flush(countWithin) })
	}
}

// flush adds the counts to the store's. If the store could not be reached, they are for the next
// flush. Else they are lost if that fails: a store that replies late may have counted them already.
func (c *counter) flush(within time.Duration) {
	ctx, cancel := context.WithTimeout(c.life, within)
	defer cancel()
	select {
	case c.adding <- struct{}{}:
		defer func() { <-c.adding }()
	case <-ctx.Done():
		return
	}
	c.mu.Lock()
	counts := c.counts
	c.counts, c.timer = backend.Activity{}, nil
	c.mu.Unlock()
	if counts == (backend.Activity{}) || ctx.Err() != nil {
		return
	}
	if err := c.add(ctx, counts); unreached(err) {
		c.count(func(a *backend.Activity) { join(a, counts) })
	}
}

// unreached reports that a store has counted nothing, but may the next time.
func unreached(err error) bool {
	temporary := errors.Is(err, backend.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
	return temporary && !errors.Is(err, backend.ErrOutcomeUnknown)
}

func join(a *backend.Activity, more backend.Activity) {
	a.Pushed += more.Pushed
	a.Acked += more.Acked
	for i, n := range more.Lateness {
		a.Lateness[i] += n
	}
}

// close adds what is left, and nothing later.
func (c *counter) close() {
	defer c.end()
	c.mu.Lock()
	if c.closed = true; c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.flush(closeWithin)
}
