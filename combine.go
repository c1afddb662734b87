package delayq

import (
	"container/list"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/delayq/delayq/backend"
)

// A combiner has the single items of concurrent callers done in few calls of the store. A call
// that finds room on the wire goes out at once, as if there were no combiner. The others gather,
// and go out together when a call comes back: nobody waits for more company. Where the wire widens they do so, too,
// when as many wait as are under way, lest hundreds wait for the few who came first. Calls that come one
// after another keep their order; those that overlap have none.
type combiner[T any] struct {
	send   func(context.Context, []T) []error
	weigh  func(T) int // in bytes
	own    func(T) T   // copies what a caller that left may write to
	direct bool        // nothing is combined
	width  int         // calls on the wire at once
	widens bool        // for as many items as are on it

	mu      sync.Mutex
	onWire  int       // calls on whose return others may wait
	items   int       // in those calls
	waiting list.List // of *call[T], in order of arrival
}

// How many calls are on the wire at once. On a narrow wire few callers wait for one another where a
// round trip is long: two on a wire of one get half of what they had apart. A wide one makes batches
// smaller, and workers that settle apart are idle apart: each claim then takes fewer messages.
const (
	pushWidth   = 4
	settleWidth = 2
)

const (
	batchBytes  = 4 << 20  // in one call
	heavyWeight = 16 << 10 // goes alone: it gains nothing by company, and would be copied
)

// combine makes the combiners. In process there are no round trips to share.
func (q *queue) combine() {
	direct := !q.Supports(Durability)
	q.pushes = &combiner[backend.Message]{send: q.store.Schedule, weigh: messageWeight, own: ownMessage, direct: direct, width: pushWidth, widens: true}
	q.acks = &combiner[backend.Lease]{send: q.store.Ack, weigh: weightless[backend.Lease], own: itself[backend.Lease], direct: direct, width: settleWidth}
	q.nacks = &combiner[backend.Return]{send: q.store.Nack, weigh: returnWeight, own: ownReturn, direct: direct, width: settleWidth}
}

func messageWeight(m backend.Message) int { return len(m.Body) + headerBytes(m.Headers) }

func ownMessage(m backend.Message) backend.Message {
	m.Body, m.Headers = append([]byte(nil), m.Body...), maps.Clone(m.Headers)
	return m
}

func returnWeight(r backend.Return) int { return headerBytes(r.Headers) }

func ownReturn(r backend.Return) backend.Return {
	r.Headers = maps.Clone(r.Headers)
	return r
}

func weightless[T any](T) int { return 0 }

func itself[T any](item T) T { return item }

// do has one item done, and leaves it as the store leaves it. When ctx ends before the item is on
// the wire, it is not done.
func (c *combiner[T]) do(ctx context.Context, item *[1]T) error {
	if c.direct {
		return one(c.send(ctx, item[:]))
	}
	return c.share(ctx, item)
}

func (c *combiner[T]) share(ctx context.Context, item *[1]T) error {
	if c.weigh(item[0]) > heavyWeight {
		return one(c.send(ctx, item[:]))
	}
	if k := c.enter(ctx, item[0]); k != nil {
		return c.await(k, item)
	}
	defer c.next(1)
	return one(c.send(ctx, item[:]))
}

// enter takes a place on the wire, or one among those that wait.
func (c *combiner[T]) enter(ctx context.Context, item T) *call[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onWire < c.width {
		c.onWire++
		c.items++
		return nil
	}
	if ctx.Done() != nil {
		item = c.own(item)
	}
	k := &call[T]{ctx: ctx, item: item, done: make(chan struct{})}
	k.place = c.waiting.PushBack(k)
	c.widenLocked()
	return k
}

// widenLocked sends those that wait if they are as many as are on the wire.
func (c *combiner[T]) widenLocked() {
	if !c.widens || c.waiting.Len() < c.items {
		return
	}
	if b := c.departLocked(); b != nil {
		c.onWire++
		go c.carry(b)
	}
}

func (c *combiner[T]) await(k *call[T], item *[1]T) error {
	select {
	case <-k.done:
	case <-k.ctx.Done():
		if done, sent := c.leave(k); sent {
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, k.ctx.Err())
		} else if !done {
			return k.ctx.Err()
		}
	}
	item[0] = k.item
	return k.outcome()
}

// leave takes the call out of those that wait, or its caller out of the batch that was sent, unless it is done.
func (c *combiner[T]) leave(k *call[T]) (done, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-k.done:
		return true, false
	default:
	}
	c.waiting.Remove(k.place)
	if k.batch == nil {
		return false, false
	}
	k.batch.leaveLocked()
	return false, true
}

// next gives the place of a call that came back, with its items, to those that wait.
func (c *combiner[T]) next(items int) {
	if b := c.gather(items); b != nil {
		go c.carry(b)
	}
}

// gather makes a batch of the first that wait. Without any, the place on the wire is free.
func (c *combiner[T]) gather(back int) *batch[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items -= back
	b := c.departLocked()
	if b == nil {
		c.onWire--
	}
	return b
}

// departLocked makes a batch of the first that wait, nil if there are none.
func (c *combiner[T]) departLocked() *batch[T] {
	if c.waiting.Len() == 0 {
		return nil
	}
	b := c.fillLocked()
	if len(b.calls) == 0 {
		return nil
	}
	c.items += len(b.calls)
	b.openLocked()
	return b
}

func (c *combiner[T]) fillLocked() *batch[T] {
	b := newBatch[T](min(c.waiting.Len(), MaxBatch))
	for e := c.waiting.Front(); e != nil && b.takesLocked(e.Value.(*call[T]), c.weigh); e = c.waiting.Front() {
		c.waiting.Remove(e)
	}
	return b
}

// carry takes a batch to the store and its outcomes to the callers, also when the store panics.
func (c *combiner[T]) carry(b *batch[T]) {
	defer b.deliver()
	defer c.next(len(b.calls))
	defer b.cancel()
	b.send(c.send)
}
