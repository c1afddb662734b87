package call_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

func TestDoReturnsWhatTheCallReturns(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"endless": context.Background(), "cancellable": ctx} {
		g := new(call.Group)
		if n, err := call.Do(ctx, g, func(context.Context) (int, error) { return 7, os.ErrExist }); n != 7 || !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if !g.Wait(ctx) {
			t.Errorf("%s: a goroutine is left", name)
		}
	}
	cancel()
	if _, err := call.Do(ctx, nil, func(context.Context) (int, error) { panic("it was called") }); !errors.Is(err, context.Canceled) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestDoReturnsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g call.Group
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		server := make(chan struct{})
		began := time.Now()
		n, err := call.Do(ctx, &g, func(context.Context) (int, error) { <-server; return 7, nil })
		if took := time.Since(began); took != time.Second || n != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, backend.ErrOutcomeUnknown) {
			t.Errorf("%d, %v after %v", n, err, took)
		}
		if g.Wait(ctx) {
			t.Error("the call is over, which it is not")
		}
		close(server)
		if !g.Wait(t.Context()) {
			t.Error("the call is not over, which it is")
		}
	})
}

// A connection's deadline may fire before the context's timer does.
func TestDoKnowsItsDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Nanosecond))
	defer cancel()
	late := lateContext{ctx, make(chan struct{})}
	_, err := call.Do(late, nil, func(context.Context) (int, error) { return 0, os.ErrDeadlineExceeded })
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, backend.ErrOutcomeUnknown) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// lateContext has not ended, though its deadline is over.
type lateContext struct {
	context.Context //nolint:containedctx // it stands for one
	done            chan struct{}
}

func (c lateContext) Done() <-chan struct{} { return c.done }
func (c lateContext) Err() error            { return nil }

func TestDoKeepsAPanicForItsCaller(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v != "of a hook" {
			t.Errorf("recovered %v", v)
		}
	}()
	_, _ = call.Do(t.Context(), nil, func(context.Context) (int, error) { panic("of a hook") })
}

// Callers that leave and come again against a server that stalls do not pile up goroutines without
// end.
func TestAbandonedCallsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g call.Group
		var running atomic.Int64
		server := make(chan struct{})
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := call.Do(ctx, &g, func(context.Context) (int, error) {
				running.Add(1)
				<-server
				return 0, nil
			})
			return err
		}
		for range 1500 {
			if err := call(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the error is %v", err)
			}
		}
		if n := running.Load(); n != 1000 {
			t.Errorf("%d calls run", n)
		}
		if err := call(); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrOutcomeUnknown) {
			t.Errorf("the error of a call that found no room is %v", err)
		}
		close(server)
		if !g.Wait(t.Context()) || call() != nil {
			t.Error("there is no room after the end of the stall")
		}
	})
}
