package batcher

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// A call waits for its item to be sent.
type call[T any] struct {
	ctx   context.Context //nolint:containedctx // the goroutine that sends the batch checks it: the caller may have gone
	item  T
	place *list.Element
	batch *batch[T] // once it is sent

	done     chan struct{} // closed when the rest is set
	err      error
	panicked *storePanic
}

// finish sets what the store made of the item and wakes the caller.
func (k *call[T]) finish(item T, err error, panicked *storePanic) {
	k.item, k.err, k.panicked = item, err, panicked
	close(k.done)
}

// A batch is calls whose items are sent together.
type batch[T any] struct {
	calls []*call[T]
	items []T
	bytes int

	ctx     context.Context //nolint:containedctx // the batch's own
	cancel  context.CancelFunc
	callers int // that have not given up

	errs     []error
	failed   error // of the batch as a whole
	panicked *storePanic
}

func newBatch[T any](size int) *batch[T] {
	return &batch[T]{calls: make([]*call[T], 0, size), items: make([]T, 0, size)}
}

// addLocked adds a call while there is room. A call whose context has ended is finished instead:
// its item is not sent.
func (b *batch[T]) addLocked(k *call[T], c *Config[T]) bool {
	if err := k.ctx.Err(); err != nil {
		k.finish(k.item, err, nil)
		return true
	}
	n := c.Size(k.item)
	if len(b.calls) == c.MaxItems || b.bytes+n > maxBytes {
		return false
	}
	b.bytes += n
	b.calls, b.items = append(b.calls, k), append(b.items, k.item)
	k.batch = b
	return true
}

// openLocked makes the context of the batch. A single caller's is its own. For several callers it
// has no values, and ends when all have given up, or at the latest of their deadlines. A context
// that cannot end costs least, so it is taken where one of the callers cannot give up.
func (b *batch[T]) openLocked() {
	b.callers = len(b.calls)
	if len(b.calls) == 1 {
		b.ctx, b.cancel = b.calls[0].ctx, func() {}
		return
	}
	if slices.ContainsFunc(b.calls, func(k *call[T]) bool { return k.ctx.Done() == nil }) {
		b.ctx, b.cancel = context.Background(), func() {}
		return
	}
	if latest, bounded := b.latest(); bounded {
		b.ctx, b.cancel = context.WithDeadline(context.Background(), latest)
		return
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
}

// latest returns the latest deadline, when all callers have one.
func (b *batch[T]) latest() (latest time.Time, bounded bool) {
	for _, k := range b.calls {
		deadline, bounded := k.ctx.Deadline()
		if !bounded {
			return time.Time{}, false
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return latest, true
}

func (b *batch[T]) leaveLocked() {
	if b.callers--; b.callers == 0 {
		b.cancel()
	}
}

var errStoreExit = errors.New("the store ended its goroutine (runtime.Goexit)")

// send keeps a panic for the callers, which then panic as if each had called the store.
func (b *batch[T]) send(send func(context.Context, []T) []error) {
	defer func() {
		if v := recover(); v != nil {
			b.panicked = &storePanic{value: v, stack: debug.Stack()}
		}
	}()
	b.failed = errStoreExit
	b.errs = send(b.ctx, b.items)
	b.failed = nil
}

func (b *batch[T]) deliver() {
	for i, k := range b.calls {
		err := b.failed
		if b.errs != nil {
			err = b.errs[i]
		}
		k.finish(b.items[i], err, b.panicked)
	}
}

// A storePanic is what each caller of a batch panics with when the store panicked.
type storePanic struct {
	value any
	stack []byte // of the goroutine of the batch
}

func (e *storePanic) Error() string { return fmt.Sprintf("%v\n%s", e.value, e.stack) }

// Unwrap returns the value where it is an error.
func (e *storePanic) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
