// Package call runs calls of a Redis client so that each returns when its context ends. The client
// library ends a call by a deadline only where its options say so, and never when a context is
// cancelled.
package call

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// A Group counts the goroutines of one backend. The zero value is ready. It is safe for concurrent
// use.
type Group struct {
	mu        sync.Mutex
	running   int
	abandoned int           // abandoned calls: their caller has returned
	changed   chan struct{} // closed when one ends; nil while no goroutine waits for that
}

// unowned is for calls of no backend.
var unowned Group

// mostAbandoned bounds the goroutines that wait in vain for a server that stalls. Further calls
// wait for one of them to end.
const mostAbandoned = 1000

// Do runs call and returns its error, or returns earlier when ctx ends. Then the error matches
// ctx's error, and also [backend.ErrOutcomeUnknown] where the call may have sent something. call
// goes on in a goroutine until the client library gives up. Its result is no longer used, and it
// must not touch the caller's memory. A context that cannot end costs no goroutine. A nil group is
// for calls of no backend, and no Close waits for them.
func Do[T any](ctx context.Context, g *Group, call func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil {
		return call(ctx)
	}
	if g == nil {
		g = &unowned
	}
	if err := g.enter(ctx); err != nil {
		return none, err
	}
	t := &task[T]{ticket: ticket{done: make(chan struct{})}}
	go t.run(ctx, g, call)
	select {
	case <-t.done:
	case <-ctx.Done():
		if g.abandon(&t.ticket) {
			return none, unknown(ctx.Err())
		}
	}
	if t.panicked != nil {
		panic(t.panicked)
	}
	return t.value, ended(ctx, t.err)
}

// A ticket is a call's entry in the group.
type ticket struct {
	done      chan struct{}
	abandoned bool
}

type task[T any] struct {
	ticket
	value    T
	err      error
	panicked any
}

var errExit = errors.New("the client ended its goroutine (runtime.Goexit)")

// run recovers a panic of one of the client's hooks and passes it to the caller.
func (t *task[T]) run(ctx context.Context, g *Group, call func(context.Context) (T, error)) {
	t.err = errExit
	defer g.leave(&t.ticket)
	defer func() { t.panicked = recover() }()
	t.value, t.err = call(ctx)
}

func unknown(err error) error { return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err) }

// ended is the error of a call that its context may have ended: a connection's deadline may fire
// just before the context's does.
func ended(ctx context.Context, err error) error {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) {
		return err
	}
	over := ctx.Err()
	if deadline, ok := ctx.Deadline(); over == nil && ok && !time.Now().Before(deadline) {
		over = context.DeadlineExceeded
	}
	switch {
	case over == nil, errors.Is(err, over):
		return err
	case Unsent(err):
		return fmt.Errorf("%w: %w", over, err)
	default:
		return fmt.Errorf("%w: %w", unknown(over), err)
	}
}

// Unsent reports whether a call failed because there was no connection to send anything on.
func Unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &op) && op.Op == "dial"
}

// enter waits until there are few enough abandoned calls.
func (g *Group) enter(ctx context.Context) error {
	for {
		changed := g.tryEnter()
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d calls wait for the server: %w", backend.ErrUnavailable, mostAbandoned, ctx.Err())
		}
	}
}

// tryEnter returns nil when there is room, and otherwise a channel that is closed at the next
// change.
func (g *Group) tryEnter() (changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned >= mostAbandoned {
		return g.nextLocked()
	}
	g.running++
	return nil
}

func (g *Group) nextLocked() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// abandon reports false when the call is done.
func (g *Group) abandon(t *ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-t.done:
		return false
	default:
	}
	t.abandoned = true
	g.abandoned++
	return true
}

func (g *Group) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(t.done)
	if t.abandoned {
		g.abandoned--
	}
	g.running--
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// Go runs do in a goroutine of the group.
func (g *Group) Go(do func()) {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	go func() {
		defer g.leave(&ticket{done: make(chan struct{})})
		do()
	}()
}

// Wait waits until no goroutine of the group runs, or until ctx ends. It reports whether none runs.
func (g *Group) Wait(ctx context.Context) bool {
	for {
		changed := g.busy()
		if changed == nil {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (g *Group) busy() (changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == 0 {
		return nil
	}
	return g.nextLocked()
}
