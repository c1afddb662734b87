// Package batcher lets concurrent calls of a store share round trips (group commit).
package batcher

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/delayq/delayq/backend"
)

const (
	maxBytes = 4 << 20 // of the items in one call

	// A larger item is sent alone: it gains nothing from sharing a round trip, and waiting would
	// copy it.
	aloneBytes = 16 << 10

	// With so many items in flight on PostgreSQL, two calls push more than four: 1.3 times as much
	// from 32 goroutines, but 0.7 times as much from four.
	fewItems = 8
)

// A Config says how items are sent.
type Config[T any] struct {
	// Send makes one call of the store. It returns an error for each item, or nil when all
	// succeeded. It may change the items.
	Send func(ctx context.Context, items []T) []error

	// Size returns how many bytes an item has; nil for items of no size.
	Size func(T) int

	// Copy copies the memory of an item that its caller may write to after it has given up; nil
	// for items without such memory.
	Copy func(T) T

	// MaxItems is the largest number of items in one call.
	MaxItems int

	// Direct sends each item by itself, for a store that needs no round trips.
	Direct bool

	// Calls is how many calls may be in flight before others wait.
	Calls int

	// Gather allows the third call and more only while few items are in flight, for a store where
	// a call costs much beside its items.
	Gather bool

	// Widen allows another call once as many items wait as are in flight. Otherwise hundreds of
	// callers would wait for the few that came first.
	Widen bool
}

// A Batcher sends the single items of concurrent callers in few calls of the store. Calls are never
// delayed to form a batch: a call that may be in flight goes out at once, in its caller's
// goroutine. The others wait, and go out together when a call returns. Calls that come one after
// another keep their order; concurrent ones have none. Its methods are safe for concurrent use.
type Batcher[T any] struct {
	Config[T]

	mu       sync.Mutex
	inFlight int       // calls whose return others may wait for
	items    int       // in those calls
	waiting  list.List // of *call[T], in order of arrival
}

// New returns a Batcher.
func New[T any](c Config[T]) *Batcher[T] {
	if c.Size == nil {
		c.Size = func(T) int { return 0 }
	}
	if c.Copy == nil {
		c.Copy = func(item T) T { return item }
	}
	return &Batcher[T]{Config: c}
}

// Do sends an item and replaces it by the store's result. It returns the store's error, and panics
// with the store's panic. When ctx ends before the item is sent, it is not sent, and the error is
// ctx's. When ctx ends later, the error also matches [backend.ErrOutcomeUnknown]. The array spares
// a lone call an allocation.
func (b *Batcher[T]) Do(ctx context.Context, item *[1]T) error {
	if b.Direct || b.Size(item[0]) > aloneBytes {
		return b.sendOne(ctx, item)
	}
	if k := b.enter(ctx, item[0]); k != nil {
		return b.wait(k, item)
	}
	defer b.next(1)
	return b.sendOne(ctx, item)
}

func (b *Batcher[T]) sendOne(ctx context.Context, item *[1]T) error {
	if errs := b.Send(ctx, item[:]); errs != nil {
		return errs[0]
	}
	return nil
}

// enter returns nil if the caller may send its item, and else the call to wait for.
func (b *Batcher[T]) enter(ctx context.Context, item T) *call[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.roomLocked() {
		b.inFlight++
		b.items++
		return nil
	}
	if ctx.Done() != nil {
		item = b.Copy(item)
	}
	k := &call[T]{ctx: ctx, item: item, done: make(chan struct{})}
	k.place = b.waiting.PushBack(k)
	if b.Widen && b.waiting.Len() >= b.items {
		if batch := b.takeLocked(); batch != nil {
			b.inFlight++
			go b.send(batch)
		}
	}
	return k
}

func (b *Batcher[T]) wait(k *call[T], item *[1]T) error {
	select {
	case <-k.done:
	case <-k.ctx.Done():
		if done, sent := b.giveUp(k); sent {
			return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, k.ctx.Err())
		} else if !done {
			return k.ctx.Err()
		}
	}
	item[0] = k.item
	if k.panicked != nil {
		panic(k.panicked)
	}
	return k.err
}

// giveUp removes a call that is not done from those that wait, or from the batch that was sent.
func (b *Batcher[T]) giveUp(k *call[T]) (done, sent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-k.done:
		return true, false
	default:
	}
	b.waiting.Remove(k.place)
	if k.batch == nil {
		return false, false
	}
	k.batch.leaveLocked()
	return false, true
}

// roomLocked reports whether another call may be in flight.
func (b *Batcher[T]) roomLocked() bool {
	return b.inFlight < b.Calls && (!b.Gather || b.inFlight < 2 || b.items < fewItems)
}

// next sends those that wait when a call with so many items has returned.
func (b *Batcher[T]) next(returned int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items -= returned
	b.inFlight--
	if !b.roomLocked() {
		return
	}
	if batch := b.takeLocked(); batch != nil {
		b.inFlight++
		go b.send(batch)
	}
}

// takeLocked makes a batch of the first calls that wait, nil if there are none.
func (b *Batcher[T]) takeLocked() *batch[T] {
	if b.waiting.Len() == 0 {
		return nil
	}
	taken := newBatch[T](min(b.waiting.Len(), b.MaxItems))
	for e := b.waiting.Front(); e != nil && taken.addLocked(e.Value.(*call[T]), &b.Config); e = b.waiting.Front() {
		b.waiting.Remove(e)
	}
	if len(taken.calls) == 0 {
		return nil
	}
	b.items += len(taken.calls)
	taken.openLocked()
	return taken
}

// send sends a batch. Its callers return and the next batch is sent even if the store panics.
func (b *Batcher[T]) send(taken *batch[T]) {
	defer taken.deliver()
	defer b.next(len(taken.calls))
	defer taken.cancel()
	taken.send(b.Send)
}
