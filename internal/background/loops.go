package background

import (
	"context"
	"sync"

	"github.com/delayq/delayq/backend"
)

// Loops are the loops that run on a queue until it closes. Its methods are safe for concurrent use.
type Loops struct {
	closing context.Context //nolint:containedctx // ends when Close begins
	close   context.CancelFunc
	mu      sync.Mutex // between the start of a loop and Close
	running sync.WaitGroup
}

// NewLoops returns Loops without a loop.
func NewLoops() *Loops {
	l := &Loops{}
	l.closing, l.close = context.WithCancel(context.Background())
	return l
}

// Run calls loop with a context that ends with ctx, or when Close begins. After Close it returns
// backend.ErrClosed and does not call.
func (l *Loops) Run(ctx context.Context, loop func(context.Context) error) error {
	l.mu.Lock()
	if l.Closed() {
		l.mu.Unlock()
		return backend.ErrClosed
	}
	l.running.Add(1)
	l.mu.Unlock()
	defer l.running.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(l.closing, stop)()
	return loop(ctx)
}

// Closed reports whether Close has begun.
func (l *Loops) Closed() bool { return l.closing.Err() != nil }

// Close ends the loops and waits until they have returned.
func (l *Loops) Close() {
	l.mu.Lock()
	l.close()
	l.mu.Unlock()
	l.running.Wait()
}
