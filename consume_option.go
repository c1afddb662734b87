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
	limited     bool // maxAttempts was asked for
	drain       time.Duration
}

const (
	maxWorkers         = 100_000
	defaultMaxAttempts = 25 // as Sidekiq and asynq
	defaultDrain       = 30 * time.Second
	maxDrain           = 24 * time.Hour
)

var defaultRetry = Exponential(time.Second, 10*time.Minute)

func newConsumeOptions(opts []ConsumeOption) (*consumeOptions, error) {
	o := &consumeOptions{
		workers:     1,
		retry:       defaultRetry,
		maxAttempts: defaultMaxAttempts,
		drain:       defaultDrain,
	}
	for _, set := range opts {
		if set == nil {
			return nil, backend.Invalid("consume option", described("nil"), "the result of Workers, Retry, MaxAttempts or Drain")
		}
		if err := set(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// uncounted lifts the limit that a backend without attempts cannot keep, unless it was asked for.
func (o *consumeOptions) uncounted(q *queue) error {
	if o.limited {
		return q.unsupported("MaxAttempts")
	}
	o.maxAttempts = 0
	return nil
}

// Workers sets how many messages are handled at once, 1 to 100,000, 1 by default. No more
// than that are leased at a time.
func Workers(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.workers = n
		return within("Workers", n, 1, maxWorkers)
	}
}

// Retry sets how long a message waits after a failure, by default 1 s after the first and twice
// as long after each further one, up to 10 min, less a random part of up to a half.
func Retry(p RetryPolicy) ConsumeOption {
	return func(o *consumeOptions) error {
		o.retry = p
		switch p := p.(type) {
		case nil:
			return backend.Invalid("Retry", described("nil"), "a RetryPolicy, as Exponential returns one")
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
// worker that dies with the message, or loses its lease, counts as a failure. 0 sets no limit. Where
// the backend does not count attempts there is no limit, and asking for one answers [ErrUnsupported].
func MaxAttempts(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.maxAttempts, o.limited = n, n > 0
		return within("MaxAttempts", n, 0, 1<<30)
	}
}

// Drain sets how long a stop waits for handlers before it ends their contexts, 0 to 24 h, 30 s
// by default; 0 ends them at once. They then have five seconds more to return before Consume answers
// [ErrDrain].
func Drain(d time.Duration) ConsumeOption {
	return func(o *consumeOptions) error {
		o.drain = d
		if d < 0 || d > maxDrain {
			return backend.Invalid("Drain", d, fmt.Sprintf("0 to %v", maxDrain))
		}
		return nil
	}
}
