package rabbitmq

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// A waiter is one Receive.
type waiter struct {
	limit int
	lease time.Duration
	over  atomic.Bool // it was given a result, or has left
	got   chan received
}

type received struct {
	ds  []backend.Delivery
	err error
}

// claim reports whether the caller decides how the wait ends. It is true once.
func (w *waiter) claim() bool { return w.over.CompareAndSwap(false, true) }

// waiters are the Receives of a handle, in the order of their calls.
type waiters struct {
	all  []*waiter
	left chan struct{} // has an item after a waiter has left without a result
}

// leave ends a wait with err, unless it was given a result in the same moment. It is safe for
// concurrent use.
func (ws *waiters) leave(w *waiter, err error) received {
	if !w.claim() {
		return <-w.got
	}
	select {
	case ws.left <- struct{}{}:
	default:
	}
	return received{err: err}
}

// wanted returns how many messages the waiters ask for. It drops the waiters that have left.
func (ws *waiters) wanted() (n int) {
	rest := ws.all[:0]
	for _, w := range ws.all {
		if !w.over.Load() {
			rest = append(rest, w)
			n += w.limit
		}
	}
	clear(ws.all[len(rest):])
	ws.all = rest
	return min(n, mostPrefetch)
}

// fail ends all waits with an error.
func (ws *waiters) fail(err error) {
	for _, w := range ws.all {
		if w.claim() {
			w.got <- received{err: err}
		}
	}
}

// receive waits for messages.
func (l *channelLoop) receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	w := &waiter{limit: limit, lease: lease, got: make(chan received, 1)}
	if err := l.do(ctx, func() { l.waiters.all = append(l.waiters.all, w) }); err != nil {
		return nil, err
	}
	var r received
	select {
	case r = <-w.got:
	case <-ctx.Done():
		r = l.waiters.leave(w, ctx.Err())
	case <-l.life.Done():
		r = l.waiters.leave(w, backend.ErrClosed)
	}
	return r.ds, r.err
}
