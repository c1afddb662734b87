package delayq

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// A call waits for the store to do its item.
type call[T any] struct {
	ctx   context.Context //nolint:containedctx // a call lives no longer than its context
	item  T
	place *list.Element
	batch *batch[T] // once on the wire

	done     chan struct{} // closed when the rest is set
	err      error
	panicked *storePanic
}

func (k *call[T]) outcome() error {
	if k.panicked != nil {
		panic(k.panicked)
	}
	return k.err
}

// stays reports whether the caller cannot leave.
func (k *call[T]) stays() bool { return k.ctx.Done() == nil }

// finish brings the call its item back and wakes the caller.
func (k *call[T]) finish(item T, err error, panicked *storePanic) {
	k.item, k.err, k.panicked = item, err, panicked
	close(k.done)
}

// A batch is calls that go to the store together.
type batch[T any] struct {
	calls  []*call[T]
	items  []T
	weight int

	ctx     context.Context //nolint:containedctx // the batch's own
	cancel  context.CancelFunc
	present int // callers that have not left

	errs     []error
	failed   error // of the batch as a whole
	panicked *storePanic
}

func newBatch[T any](size int) *batch[T] {
	return &batch[T]{calls: make([]*call[T], 0, size), items: make([]T, 0, size)}
}

// takesLocked takes a call along while there is room. One whose caller is about to leave is
// over: its item is not done.
func (b *batch[T]) takesLocked(k *call[T], weigh func(T) int) bool {
	if err := k.ctx.Err(); err != nil {
		k.finish(k.item, err, nil)
		return true
	}
	w := weigh(k.item)
	if len(b.calls) == MaxBatch || b.weight+w > batchBytes {
		return false
	}
	b.weight += w
	b.calls, b.items = append(b.calls, k), append(b.items, k.item)
	k.batch = b
	return true
}

// openLocked makes the context of the call: a single caller's own, and for several one without
// values that ends when all have left, or at the latest of their deadlines. One that cannot end is the cheapest.
func (b *batch[T]) openLocked() {
	b.present = len(b.calls)
	if len(b.calls) == 1 {
		b.ctx, b.cancel = b.calls[0].ctx, func() {}
		return
	}
	if slices.ContainsFunc(b.calls, (*call[T]).stays) {
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
	if b.present--; b.present == 0 {
		b.cancel()
	}
}

var errStoreExit = errors.New("the store ended its goroutine (runtime.Goexit)")

// send keeps a panic for the callers, to whom it would have come without company.
func (b *batch[T]) send(do func(context.Context, []T) []error) {
	defer func() {
		if v := recover(); v != nil {
			b.panicked = &storePanic{value: v, stack: debug.Stack()}
		}
	}()
	b.failed = errStoreExit
	b.errs = do(b.ctx, b.items)
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

// storePanic is what callers panic with when the store did in the call that they shared.
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
