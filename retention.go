package delayq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// What [DeadLetterRetention] keeps unless it is given. asynq keeps 90 days and 10,000.
const (
	DefaultDeadLetterAge   = 90 * 24 * time.Hour
	DefaultDeadLetterCount = 100_000
)

// DeadLetterRetention sets which dead letters the queue keeps: those that died less than maxAge
// ago, by the store's clock, and the maxCount youngest. The others are deleted. 0 is no bound; up
// to a hundred years and 2^30 letters are allowed. The default is [DefaultDeadLetterAge] and
// [DefaultDeadLetterCount].
//
// Each process deletes by its own retention, so that the strictest one counts: give all the same.
// It looks some seconds after New or Open, then every ten minutes, and at once when it has itself
// made 1 % of maxCount dead letters, and ten at least; so the count may be exceeded by as many for
// each process. The store deletes in steps that take a few milliseconds. Without the feature
// [Redriving] nothing is deleted. The steps run by the process's clock, whatever [WithClock] says.
func DeadLetterRetention(maxAge time.Duration, maxCount int) Option {
	return func(o *options) error {
		o.retention = backend.Retention{MaxAge: maxAge, MaxCount: maxCount}
		return validRetention("DeadLetterRetention", maxAge, maxCount)
	}
}

const mostDeadLetters = 1 << 30

func validRetention(what string, maxAge time.Duration, maxCount int) error {
	if maxAge != 0 && (maxAge < time.Millisecond || maxAge > backend.MaxDelay) {
		return backend.Invalid(what+"'s age", maxAge, fmt.Sprintf("0 for any age, or 1ms to %v", backend.MaxDelay))
	}
	return within(what+"'s count", maxCount, 0, mostDeadLetters)
}

// Trim deletes the dead letters that died maxAge ago or longer, by the store's clock, and the
// oldest of more than maxCount; 0 is no bound, and one bound is needed. It returns how many it
// deleted, also when ctx ends it or the store fails. [DeadLetterRetention] does so all the time.
func (l DeadLetters) Trim(ctx context.Context, maxAge time.Duration, maxCount int) (n int, err error) {
	if err := l.check(ctx, "trim dead"); err != nil {
		return 0, err
	}
	err = validRetention("Trim", maxAge, maxCount)
	if err == nil && maxAge == 0 && maxCount == 0 {
		err = backend.Invalid("Trim", described("without a bound"), "an age, a count or both")
	}
	if err == nil {
		n, err = l.q.trimDead(ctx, backend.Retention{MaxAge: maxAge, MaxCount: maxCount})
	}
	return n, l.q.fail("trim dead", "", err)
}

// trimDead deletes in steps, and leaves the store as much time for others as it takes.
func (q *queue) trimDead(ctx context.Context, keep backend.Retention) (n int, err error) {
	for {
		began := time.Now()
		removed, more, err := q.store.TrimDead(ctx, keep)
		n += removed
		q.telemetry.Trimmed(ctx, removed)
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

// A trimmer applies a queue's retention by a timer, on the process's clock: a fake clock is the
// test's alone.
type trimmer struct {
	q    *queue
	keep backend.Retention

	mu      sync.Mutex
	timer   *time.Timer
	begun   bool
	running bool
	made    int // dead letters of this handle since the last look
}

const (
	firstTrim = time.Second // and up to ten more: workers may be short-lived
	trimEvery = 10 * time.Minute
)

// startTrimming returns nil where there is nothing to delete. In a store that ends with the process
// there is nothing before the first dead letter, and no timer: a test in a bubble of
// testing/synctest that waits for ever would otherwise not be found out.
func (q *queue) startTrimming(keep backend.Retention) *trimmer {
	if keep == (backend.Retention{}) || !q.Supports(Redriving) {
		return nil
	}
	t := &trimmer{q: q, keep: keep}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(math.MaxInt64, t.trim)
	t.timer.Stop()
	if q.Supports(Durability) {
		t.begin()
	}
	return t
}

func (t *trimmer) begin() {
	t.begun = true
	t.timer.Reset(firstTrim + rand.N(10*time.Second))
}

func (t *trimmer) trim() {
	if !t.start() {
		return
	}
	closed := false // the backend, before the queue
	_ = t.q.runUntilClose(context.Background(), func(ctx context.Context) error {
		n, err := t.q.trimDead(ctx, t.keep)
		if n > 0 {
			t.q.log.Info("delayq: dead letters beyond the retention were deleted", "letters", n, "max_age", t.keep.MaxAge, "max_count", t.keep.MaxCount)
		}
		if closed = errors.Is(err, ErrClosed); err != nil && !closed && t.q.stopping.Err() == nil {
			t.q.log.Warn("delayq: deleting dead letters beyond the retention failed; it is tried again in ten minutes", "err", err)
		}
		return nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	switch {
	case closed || t.q.stopping.Err() != nil:
	case t.tooMany(t.made): // made after the last look
		t.timer.Reset(0)
	default:
		t.timer.Reset(trimEvery - trimEvery/20 + rand.N(trimEvery/10))
	}
}

// start reports false while another look goes on.
func (t *trimmer) start() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		return false
	}
	t.running, t.made = true, 0
	return true
}

// tooMany reports whether so many new dead letters cannot wait for the next look.
func (t *trimmer) tooMany(made int) bool {
	return t.keep.MaxCount > 0 && made >= max(t.keep.MaxCount/100, 10)
}

// died looks sooner when many dead letters were made.
func (t *trimmer) died(n int) {
	if t == nil || n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		t.begin()
	}
	before := t.made
	t.made += n
	if !t.running && !t.tooMany(before) && t.tooMany(t.made) {
		t.timer.Reset(0)
	}
}

// close is called once the queue is stopping.
func (t *trimmer) close() {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.timer.Stop()
	}
}

// deadLetters makes messages dead letters.
func (q *queue) deadLetters(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	errs := q.store.Dead(ctx, bs)
	q.trimmer.died(succeeded(len(bs), errs))
	return errs
}
