package delayq

import (
	"errors"
	"fmt"
	"time"
)

// RetryAfterError is a failure that says itself how long the message waits. It counts as an attempt, as every failure does.
type RetryAfterError struct {
	Delay time.Duration // 0 to a hundred years
	Err   error         // what failed
}

// RetryAfter returns err as a [RetryAfterError], for a handler that knows better than the policy when to try again: a server
// that said so, a lock that ends then.
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

// Unwrap returns what failed.
func (e *RetryAfterError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// asked is the delay that an error asks for.
func asked(err error) (delay time.Duration, ok bool) {
	var after *RetryAfterError
	if errors.As(err, &after) && after != nil {
		return after.Delay, true
	}
	return 0, false
}
