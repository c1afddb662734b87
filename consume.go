package delayq

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/consumer"
	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// ConsumeOption sets up a Consume.
type ConsumeOption func(*consumeOptions) error

type consumeOptions struct {
	consumer.Options
	retry   RetryPolicy
	limited bool // MaxAttempts was asked for
	onDead  func(ctx context.Context, d *Delivery, reason string, cause error)
	around  []Middleware
}

const (
	maxWorkers         = 100_000
	defaultMaxAttempts = 25 // as Sidekiq and asynq
	defaultDrain       = 30 * time.Second
	defaultPrefetch    = 1000
	unset              = -1
)

var (
	defaultRetry = Exponential(time.Second, 10*time.Minute)

	// refetch spaces the tries of a consumer whose store fails.
	refetch = Exponential(50*time.Millisecond, 5*time.Second)
)

func newConsumeOptions(opts []ConsumeOption) (*consumeOptions, error) {
	o := &consumeOptions{retry: defaultRetry}
	o.Workers, o.MaxAttempts, o.Drain, o.Prefetch = 1, defaultMaxAttempts, defaultDrain, unset
	if err := valid.Apply(o, opts, "consume option", "the result of Workers, Retry or another option"); err != nil {
		return nil, err
	}
	if o.Prefetch == unset {
		o.Prefetch = defaultPrefetch
		if o.Workers == 1 { // order matters more than speed then
			o.Prefetch = 0
		}
	}
	return o, nil
}

// ValidateConsumeOptions returns the error that [Consumer.Consume] would return for these options,
// an [InvalidError] or nil, so that a program can reject its users' settings early. It does not
// check [MaxAttempts] on a backend that lacks [CountingAttempts].
func ValidateConsumeOptions(opts ...ConsumeOption) error {
	_, err := newConsumeOptions(opts)
	return opError("consume", "", "", err)
}

// Workers sets how many messages are handled at once, 1 to 100,000, 1 by default. No more than that
// are leased at a time, except for messages claimed ahead by [Prefetch].
func Workers(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.Workers = n
		return valid.Within("Workers", n, 1, maxWorkers)
	}
}

// Retry sets how long a message waits after a failure, by default 1 s after the first and twice
// as long after each further one, up to 10 min, less a random part of up to a half.
func Retry(p RetryPolicy) ConsumeOption {
	return func(o *consumeOptions) error {
		o.retry = p
		switch p := p.(type) {
		case nil:
			return backend.Invalid("Retry", valid.Described("nil"), "a RetryPolicy, as Exponential returns one")
		case Backoff:
			return valid.Backoff(p.Base, p.Max, p.Factor, p.Jitter)
		case *Backoff:
			if p == nil {
				return Retry(nil)(o)
			}
			return Retry(*p)(o)
		case Delays:
			return valid.Delays(p)
		}
		return nil
	}
}

// MaxAttempts sets after how many failures a message becomes a dead letter, 25 by default; 0 sets
// no limit. A message that was pushed with [Attempts] has its own limit. A worker that dies with the
// message, or loses its lease, counts as a failure. A limit needs [CountingAttempts]: a backend
// without it has none.
func MaxAttempts(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.MaxAttempts, o.limited = n, n > 0
		return valid.Within("MaxAttempts", n, 0, valid.MaxAttempts)
	}
}

// Drain sets how long a stop waits for handlers before it ends their contexts, 0 to 24 h, 30 s by
// default; 0 ends them at once, without a warning. They then have five more seconds to return before
// Consume returns [ErrDrain].
func Drain(d time.Duration) ConsumeOption {
	return func(o *consumeOptions) error {
		o.Drain = d
		return valid.Drain(d)
	}
}

// Prefetch sets how many messages may be claimed ahead of the workers, 0 to [MaxBatch], by default
// 1000, and 0 with one worker. It is a limit: as long as the workers are fast and more is due than
// they take, the consumer claims what they finish in about 5 ms, up to 8 MiB, so that one round
// trip serves many messages. Where a claim takes long, it is what they finish in four times that,
// but not in more than 25 ms. With slow handlers it claims nothing ahead.
//
// A message that no worker has taken after 100 ms, or a third of the lease where that is less, is
// given back untouched. A process that dies spends an attempt of each message it had claimed.
//
// Workers also take their next message while their last one is still being settled, up to four for
// each worker and 16 on SQLite, so that acks share round trips and transactions. A process that
// dies in between leaves these messages to be handled again. With Prefetch(0), and with one worker
// unless Prefetch is set, a worker waits until its message is settled.
//
// One worker takes one message at a time, so that a message pushed with an earlier due time comes
// first. Setting Prefetch gives that up for speed: messages then come in the order claimed.
func Prefetch(n int) ConsumeOption {
	return func(o *consumeOptions) error {
		o.Prefetch = n
		return valid.Within("Prefetch", n, 0, MaxBatch)
	}
}

// RateLimit sets how many messages per second a Consume takes on average, more than 0, and how many
// at once after a quiet time, 1 to [MaxBatch], to spare the services that handlers call. There is
// no limit by default. It holds for this Consume alone; the other messages stay in the store.
func RateLimit(perSecond float64, burst int) ConsumeOption {
	return func(o *consumeOptions) error {
		if !(perSecond > 0) || math.IsInf(perSecond, 1) {
			return backend.Invalid("RateLimit", perSecond, "a finite number of messages a second, more than 0")
		}
		o.Rate = rate.NewLimiter(rate.Limit(perSecond), burst)
		return valid.Within("RateLimit burst", burst, 1, MaxBatch)
	}
}

// Timeout sets how long a handler may take for a message, 1 ms to 24 h; there is no limit by
// default. A message that was pushed with [HandlerTimeout] has its own limit. Then its context ends
// with the [context.Cause] [ErrTimeout], and the message fails unless the handler returns nil. A
// handler that has not returned five seconds later loses its lease, so that another worker gets the
// message: the lease ends one [WithLease] later, and [Delivery.Extend] returns [ErrLeaseLost]. Its
// own worker stays busy until it returns.
func Timeout(d time.Duration) ConsumeOption {
	return func(o *consumeOptions) error {
		o.Timeout = d
		return valid.Timeout("Timeout", d)
	}
}

// OnDead has f called for each message that this Consume makes a dead letter: the message, the
// reason of the dead letter and the error that it comes from, such as the handler's. Messages that
// no handler got are reported too: those whose attempts no worker has settled, and
// expired ones with [DeadLetterExpired]. Those that a handler makes dead letters with
// [Delivery.DeadLetter] are not.
//
// f is called once for a message, after the store has confirmed that it is a dead letter. So there
// is no call when the reply of the store is lost, or when the process dies before.
//
// f runs in the message's worker, which takes its next message afterwards or meanwhile, as
// [Prefetch] says. Its context carries the values of the handler's context, and ends after 30
// seconds. A panic is logged. A stop waits for f as it waits for a handler.
func OnDead(f func(ctx context.Context, d *Delivery, reason string, cause error)) ConsumeOption {
	return func(o *consumeOptions) error {
		if o.onDead = f; f == nil {
			return backend.Invalid("OnDead", valid.Described("nil"), "a function")
		}
		return nil
	}
}

func (q *queue) Consume(ctx context.Context, h Handler, opts ...ConsumeOption) error {
	c, err := q.newConsumer(ctx, h, opts)
	if err != nil {
		return q.fail("consume", "", err)
	}
	return q.fail("consume", "", q.loops.Run(ctx, func(ctx context.Context) error { return consumer.Run(ctx, *c) }))
}

func (q *queue) newConsumer(ctx context.Context, h Handler, opts []ConsumeOption) (*consumer.Config, error) {
	o, err := newConsumeOptions(opts)
	if err == nil && h == nil {
		err = backend.Invalid("handler", valid.Described("nil"), "a function")
	}
	if err = cmp.Or(err, valid.Context(ctx)); err != nil {
		return nil, err
	}
	if err := q.lacks(CountingAttempts, "MaxAttempts"); err != nil {
		if o.limited {
			return nil, err
		}
		o.MaxAttempts = 0
	}
	for _, m := range slices.Backward(o.around) {
		if h = m(h); h == nil {
			return nil, backend.Invalid("Use", valid.Described("middleware that returns nil"), "middleware that returns a handler")
		}
	}
	c := &consumer.Config{
		Options:   o.Options,
		Receive:   q.claim,
		Extend:    q.settle.Extend,
		Store:     q.store,
		Gate:      q.gate,
		Clock:     q.clock,
		Log:       q.log,
		Lease:     q.lease,
		InProcess: q.traits.Calls == backend.NoRoundTrip && !q.Supports(Durability),
		Calls:     q.traits.Calls,
		MaxDelay:  valid.MaxDelay(q.traits),
		Handle:    func(ctx context.Context, d consumer.Delivery) error { return h.call(ctx, d.(delivery).Delivery) },
		Classify:  classify,
		Retry:     o.retry.Delay,
		Fallback:  defaultRetry.Delay,
		Refetch:   refetch.Delay,
		Telemetry: q.telemetry,
	}
	if o.onDead != nil {
		c.OnDead = func(ctx context.Context, d consumer.Delivery, reason string, cause error) {
			defer guard.Log(q.log, "OnDead")
			o.onDead(ctx, d.(delivery).Delivery, valid.Reason(reason), cause)
		}
	}
	return c, nil
}

func (q *queue) Pause()  { q.gate.Shut() }
func (q *queue) Resume() { q.gate.Open() }

func (q *queue) claim(ctx context.Context, limit int) ([]consumer.Delivery, error) {
	all, err := q.receive(ctx, limit, true)
	ds := make([]consumer.Delivery, len(all))
	for i, d := range all {
		ds[i] = delivery{d}
	}
	return ds, err
}

// delivery is a Delivery as the consumer sees it.
type delivery struct{ *Delivery }

func (d delivery) ID() string          { return d.Delivery.ID }
func (d delivery) Attempt() int        { return d.attempt }
func (d delivery) Size() int           { return len(d.Body) + valid.HeaderBytes(d.Headers) }
func (d delivery) Lease() *lease.Lease { return &d.lease }
func (d delivery) Expired() error      { return d.expired }

func (d delivery) Observed(now time.Time) telemetry.Delivery {
	return telemetry.Delivery{
		ID: d.Delivery.ID, BodySize: len(d.Body), Headers: d.Headers, Attempt: d.Delivery.Attempt, Lateness: d.lease.Late(d.Due, now),
	}
}

func (d delivery) Nack(ctx context.Context, delay time.Duration) error {
	return d.Delivery.Nack(ctx, delay)
}
