package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/delayq/delayq/backend"
)

// calls keeps account of a backend's goroutines.
type calls struct {
	mu      sync.Mutex
	running int
	changed chan struct{} // closed when one ends; nil while no goroutine waits for that
}

func (c *calls) run(do func()) {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		do()
	}()
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// wait reports whether all have ended before ctx has.
func (c *calls) wait(ctx context.Context) bool {
	for {
		c.mu.Lock()
		if c.running == 0 {
			c.mu.Unlock()
			return true
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

const (
	// abandonedWithin is how long a call goes on when its caller has left. Ending it at once would
	// cost its connection.
	abandonedWithin = 5 * time.Second
	// claimWithin bounds a call without a deadline of its own.
	claimWithin = 30 * time.Second
	// mostTries is how often a transaction is tried that the server has rolled back.
	mostTries = 10
)

// call runs a statement and reads its rows. It returns when ctx ends: the statement then goes on in
// the background, and args must not be the caller's memory.
func call[T any](ctx context.Context, b *Backend, statement string, args []any, read func(into *T, s scan) error) (T, error) {
	return callWith(ctx, b, func(ctx context.Context, e executor) (T, error) {
		var all T
		err := e.query(ctx, statement, args, func(s scan) error { return read(&all, s) })
		return all, err
	})
}

func callWith[T any](ctx context.Context, b *Backend, do func(context.Context, executor) (T, error)) (T, error) {
	for try := 1; ; try++ {
		got, err := callOnce(ctx, b, do)
		if err == nil || try == mostTries || !again(err) {
			return got, explain(&b.cfg, err)
		}
	}
}

// again reports whether nothing has happened, and a new try may do better.
func again(err error) bool {
	code := codeOf(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case code != "":
		return code == deadlock || code == serialization
	default:
		return pgconn.SafeToRetry(err) && !unconnected(err)
	}
}

func unconnected(err error) bool {
	var failed *pgconn.ConnectError
	return errors.As(err, &failed)
}

// callOnce runs do on a connection. Before do has begun, the end of ctx means that nothing was sent.
func callOnce[T any](ctx context.Context, b *Backend, do func(context.Context, executor) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, unsent{err}
	}
	if ctx.Done() == nil {
		within, cancel := context.WithTimeout(ctx, b.within)
		defer cancel()
		value, err := onConnection(within, within, b, func() bool { return true }, do)
		if within.Err() != nil {
			err = pastLimit(b.within, err)
		}
		return value, err
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	alone, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var decided atomic.Bool // that do begins, or that it never does
	first := func() bool { return decided.CompareAndSwap(false, true) }
	b.calls.run(func() {
		defer cancel()
		value, err := onConnection(ctx, alone, b, first, do)
		done <- outcome{value, err}
	})
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	if first() {
		return none, unsent{ctx.Err()}
	}
	time.AfterFunc(abandonedWithin, cancel)
	return none, fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, ctx.Err())
}

// pastLimit is the error of a call that our own limit has ended. It matches no context's: the caller's
// has not ended.
func pastLimit(within time.Duration, err error) error {
	var notSent unsent
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &notSent):
		return unsent{fmt.Errorf("no connection of the pool within %v: let it have more, or look whether the server replies", within)}
	default:
		return fmt.Errorf("no reply within %v: %s", within, err.Error())
	}
}

// onConnection takes a connection of the pool, until ctx ends, and runs do on it with the context
// alone, unless begin says that it is too late.
func onConnection[T any](ctx, alone context.Context, b *Backend, begin func() bool, do func(context.Context, executor) (T, error)) (T, error) {
	var none T
	conn, err := b.db.acquire(ctx)
	if err != nil {
		switch over := ctx.Err(); {
		case over == nil && errors.Is(err, context.DeadlineExceeded): // as by connect_timeout
			err = errors.New(err.Error())
		case over != nil && !errors.Is(err, over):
			err = fmt.Errorf("%w: %w", over, err)
		}
		return none, unsent{err}
	}
	defer conn.release()
	if !begin() {
		return none, unsent{ctx.Err()}
	}
	return do(alone, conn)
}

// unsent marks an error of a call that has sent nothing.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }
