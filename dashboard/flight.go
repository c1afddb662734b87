package dashboard

import (
	"context"
	"sync"
	"time"
)

// flight lets concurrent callers share one call. The call goes on when a caller leaves.
type flight[T any] struct {
	mu  sync.Mutex
	now *call[T]
}

type call[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func (f *flight[T]) do(ctx context.Context, limit time.Duration, fn func(context.Context) (T, error)) (T, error) {
	f.mu.Lock()
	c := f.now
	if c == nil {
		c = &call[T]{done: make(chan struct{})}
		f.now = c
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			c.value, c.err = fn(ctx)
			f.mu.Lock()
			f.now = nil
			f.mu.Unlock()
			close(c.done)
		}()
	}
	f.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
