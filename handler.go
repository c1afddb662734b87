package delayq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/consumer"
	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// Handler handles one message. A nil result acknowledges the message and an error makes it fail;
// [ErrDrop], [ErrDeadLetter] and [RetryAfter] say more.
//
// ctx ends when the handler must stop, and [context.Cause] says why: [ErrLeaseLost], [ErrTimeout]
// when it takes longer than [Timeout] allows, or [ErrDrain] when a stop takes longer than [Drain]
// allows. The handler may settle the message itself; its result then only goes to the log.
// Its goroutine handles other messages later: a handler that locks the thread unlocks it.
type Handler func(ctx context.Context, d *Delivery) error

// Middleware wraps a handler: to log, to measure, to open a transaction around it. The handler that
// it returns is called from many goroutines.
type Middleware func(Handler) Handler

// Use wraps the handler in middleware. The first is the outermost: it is called first and sees the
// errors of the others. A second Use adds to the first. Panics pass through middleware.
func Use(ms ...Middleware) ConsumeOption {
	return func(o *consumeOptions) error {
		if slices.ContainsFunc(ms, func(m Middleware) bool { return m == nil }) {
			return backend.Invalid("Use", valid.Described("nil"), "a func(Handler) Handler")
		}
		o.around = append(o.around, ms...)
		return nil
	}
}

// PanicError is the error of a message whose handler panicked.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // of the handler's goroutine
}

func (e *PanicError) Error() string {
	if e == nil {
		return "handler panicked"
	}
	return fmt.Sprintf("handler panicked: %s\n%s", guard.Sprint(e.Value), e.Stack)
}

// Unwrap returns the value where it is an error. A panic is always a failure: it makes no
// difference that the value matches [ErrDrop] or [ErrDeadLetter], or is a [RetryAfterError].
func (e *PanicError) Unwrap() error {
	if e == nil {
		return nil
	}
	err, _ := e.Value.(error)
	return err
}

// RetryAfterError is a failure that sets how long the message waits for its next attempt. The
// attempt counts.
type RetryAfterError struct {
	Delay time.Duration // 0 to a hundred years
	Err   error         // the failure
}

// RetryAfter returns err as a [RetryAfterError], for a handler that knows the time of the next try:
// after a rate limit's reset, or when a lock ends.
func RetryAfter(err error, delay time.Duration) error {
	return &RetryAfterError{Delay: delay, Err: err}
}

func (e *RetryAfterError) Error() string {
	if e == nil {
		return "retry later"
	}
	if e.Err == nil {
		return fmt.Sprintf("retry after %v", e.Delay)
	}
	return e.Err.Error()
}

// Unwrap returns the failure.
func (e *RetryAfterError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// call makes an error of a panic.
func (h Handler) call(ctx context.Context, d *Delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return h(ctx, d)
}

// classify reads a handler's error. Its methods may panic, which makes it a plain failure.
func classify(err error) consumer.Failure {
	f := consumer.Failure{Err: err}
	caught := guard.Call(fmt.Sprintf("handler's error, a %T,", err), func() {
		f.Reason = err.Error()
		var inner *PanicError
		if errors.As(err, &inner) {
			f.Kind = telemetry.FailedPanic
			return
		}
		f.Drop, f.Dead = errors.Is(err, ErrDrop), errors.Is(err, ErrDeadLetter)
		var after *RetryAfterError
		if errors.As(err, &after) && after != nil {
			f.RetryAfter = &after.Delay
		}
	})
	if caught != nil {
		return consumer.Failure{Err: caught, Reason: caught.Error(), Kind: telemetry.FailedPanic}
	}
	return f
}
