// Package trim deletes the dead letters of a queue that are beyond its retention: in steps, so that
// the store serves others between them, and again and again by a timer.
package trim

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// A Step deletes some of the dead letters beyond a retention, and reports whether there are more.
type Step func(context.Context, backend.Retention) (removed int, more bool, err error)

// All calls step until nothing is left to delete, and leaves the store as much time for others as
// it takes. It returns how many letters were deleted, also with an error.
func All(ctx context.Context, step Step, keep backend.Retention) (n int, err error) {
	for {
		began := time.Now()
		removed, more, err := step(ctx, keep)
		n += removed
		if err != nil || !more {
			return n, err
		}
		select {
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
}

// Config is what a Trimmer needs of its queue.
type Config struct {
	Keep backend.Retention
	Step Step
	// Run calls loop with a context that ends when the queue closes, or returns backend.ErrClosed.
	Run func(ctx context.Context, loop func(context.Context) error) error
	Log *slog.Logger
}

// A Trimmer applies a queue's retention by a timer, on the process's clock: a fake clock is the
// test's alone. A nil Trimmer does nothing. Its methods are safe for concurrent use.
type Trimmer struct {
	Config

	mu      sync.Mutex
	timer   *time.Timer
	begun   bool
	running bool
	closed  bool
	made    int // dead letters of this handle since the last look
}

const (
	first = time.Second // and up to ten more: workers may be short-lived
	every = 10 * time.Minute
)

// New returns a Trimmer that sleeps until Begin, or until Died reports the first dead letter. It
// returns nil for a retention without a bound.
func New(c Config) *Trimmer {
	if c.Keep == (backend.Retention{}) {
		return nil
	}
	t := &Trimmer{Config: c}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(math.MaxInt64, t.look)
	t.timer.Stop()
	return t
}

// Begin starts the timer. A store that ends with the process needs none before the first dead
// letter: with it, a test in a bubble of testing/synctest that waits for ever would not be found
// out.
func (t *Trimmer) Begin() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
}

func (t *Trimmer) begin() {
	if !t.begun {
		t.begun = true
		t.timer.Reset(first + rand.N(10*time.Second))
	}
}

// Died looks sooner when many dead letters were made.
func (t *Trimmer) Died(n int) {
	if t == nil || n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.begin()
	before := t.made
	t.made += n
	if !t.running && !t.tooMany(before) && t.tooMany(t.made) {
		t.timer.Reset(0)
	}
}

// tooMany reports whether so many new dead letters cannot wait for the next look.
func (t *Trimmer) tooMany(made int) bool {
	return t.Keep.MaxCount > 0 && made >= max(t.Keep.MaxCount/100, 10)
}

// Close stops the timer. It does not wait for a look that goes on: Run does.
func (t *Trimmer) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.timer.Stop()
}

func (t *Trimmer) look() {
	if !t.start() {
		return
	}
	err := t.Run(context.Background(), func(ctx context.Context) error {
		n, err := All(ctx, t.Step, t.Keep)
		if n > 0 {
			t.Log.Info("delayq: dead letters beyond the retention were deleted",
				"letters", n, "max_age", t.Keep.MaxAge, "max_count", t.Keep.MaxCount)
		}
		if err != nil && !errors.Is(err, backend.ErrClosed) && ctx.Err() == nil {
			t.Log.Warn("delayq: deleting dead letters beyond the retention failed; it is tried again in ten minutes", "err", err)
		}
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	switch {
	case t.closed || errors.Is(err, backend.ErrClosed): // the backend may be closed before the queue
	case t.tooMany(t.made): // made after the last look
		t.timer.Reset(0)
	default:
		t.timer.Reset(every - every/20 + rand.N(every/10))
	}
}

// start reports false while another look goes on.
func (t *Trimmer) start() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		return false
	}
	t.running, t.made = true, 0
	return true
}
