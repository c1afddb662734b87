package delayq

import (
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
)

// ConsumeOption sets up a Consume.
type ConsumeOption func(*consumeOptions) error

type consumeOptions struct {
	workers     int
	retry       RetryPolicy
	maxAttempts int
	drain       time.Duration
}

const (
	maxWorkers         = 100_000
	defaultMaxAttempts = 25 // as Sidekiq and asynq
	defaultDrain       = 30 * time.Second
	maxDrain           = 24 * time.Hour
)

func newConsumeOptions(opts []ConsumeOption) (*consumeOptions, error) {
	o := &consumeOptions{
		workers:     1,
		retry:       Exponential(time.Second, 10*time.Minute),
		maxAttempts: defaultMaxAttempts,
		drain:       defaultDrain,
	}
	for _, set := range opts {
		if set == nil {
			return nil, backend.Invalid("consume option", "nil", "the result of Workers, Retry, MaxAttempts or Drain")
		}
		if err := set(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Workers sets how many messages are handled at once, 1 to 100,000, 1 by default. As many
// messages are held, no more.
func Workers(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.workers = n
		return within("Workers", n, 1, maxWorkers)
	}
}

// Retry sets how long a message waits after a failure, by default from 1 s to 10 min,
// doubling, with jitter.
func Retry(p RetryPolicy) ConsumeOption {
	return func(o *consumeOptions) error {
		o.retry = p
		switch p := p.(type) {
		case nil:
			return backend.Invalid("Retry", "nil", "a RetryPolicy, as Exponential returns one")
		case Backoff:
			return p.validate()
		case *Backoff:
			if p == nil {
				return Retry(nil)(o)
			}
			return p.validate()
		}
		return nil
	}
}

// MaxAttempts sets after how many failures a message becomes a dead letter, 25 by default. A
// worker that dies with the message counts as a failure. 0 sets no limit.
func MaxAttempts(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.maxAttempts = n
		return within("MaxAttempts", n, 0, 1<<30)
	}
}

// Drain sets how long a stop waits for handlers before it ends their contexts, 0 to 24 h, 30 s
// by default. They then have five seconds more to return.
func Drain(d time.Duration) ConsumeOption {
	return func(o *consumeOptions) error {
		o.drain = d
		if d < 0 || d > maxDrain {
			return backend.Invalid("Drain", d, fmt.Sprintf("0 to %v", maxDrain))
		}
		return nil
	}
}

func within(what string, n, low, high int) error {
	if n < low || n > high {
		return backend.Invalid(what, n, fmt.Sprintf("%d to %d", low, high))
	}
	return nil
}
