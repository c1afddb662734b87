package delayq

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

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
	prefetch    int
	timeout     time.Duration // 0 for none
	rate        *rate.Limiter // nil for none
	around      []Middleware
}

const (
	maxWorkers         = 100_000
	defaultMaxAttempts = 25 // as Sidekiq and asynq
	defaultDrain       = 30 * time.Second
	maxDrain           = 24 * time.Hour
	defaultPrefetch    = 1000
	unset              = -1
)

var defaultRetry = Exponential(time.Second, 10*time.Minute)

func newConsumeOptions(opts []ConsumeOption) (*consumeOptions, error) {
	o := &consumeOptions{
		workers:     1,
		retry:       defaultRetry,
		maxAttempts: defaultMaxAttempts,
		drain:       defaultDrain,
		prefetch:    unset,
	}
	for _, set := range opts {
		if set == nil {
			return nil, backend.Invalid("consume option", described("nil"), "the result of Workers, Retry or another option")
		}
		if err := set(o); err != nil {
			return nil, err
		}
	}
	o.setPrefetch()
	return o, nil
}

// ValidateConsumeOptions returns the error that [Queue.Consume] would return for these options, an [InvalidError] or nil, so that a program
// that takes them can refuse them before it consumes. What depends on the queue is left to Consume: [MaxAttempts] on a backend without the
// feature [CountingAttempts].
func ValidateConsumeOptions(opts ...ConsumeOption) error {
	_, err := newConsumeOptions(opts)
	return opError("consume", "", "", err)
}

// setPrefetch sets what was not asked for. With one worker, order matters more than speed.
func (o *consumeOptions) setPrefetch() {
	switch {
	case o.prefetch != unset:
	case o.workers == 1:
		o.prefetch = 0
	default:
		o.prefetch = defaultPrefetch
	}
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
// than that are leased at a time, but for what [Prefetch] allows.
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
		case Delays:
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
// by default; 0 ends them at once, without a warning. They then have five seconds more to return before Consume answers
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

// Prefetch sets how many messages may be claimed ahead of the workers, 0 to [MaxBatch], by default
// 1000, and 0 with one worker. It is a limit: as long as the workers are fast and more is due than they
// take, the consumer claims what they finish in about 5 ms, up to 8 MiB, so that one round trip
// serves many messages. With slow handlers it claims nothing ahead.
//
// A message that no worker has taken after 100 ms, or a third of the lease where that is less, is given
// back untouched. A process that dies spends an attempt of each message it had claimed.
//
// Workers also go on to the next message while the store is told of their last one, up to four for each worker: acks then share
// round trips as well. A process that dies in between leaves these messages to be handled again. With Prefetch(0), and with one worker
// unless Prefetch is asked for, a worker waits until its message is settled.
//
// One worker takes one message at a time, so that one that is pushed with an earlier due time comes
// first. Asking for Prefetch gives that up for speed: messages then come in the order claimed.
func Prefetch(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.prefetch = n
		return within("Prefetch", n, 0, MaxBatch)
	}
}
