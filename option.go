package delayq

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/guard"
	"github.com/delayq/delayq/internal/valid"
)

// Option sets up a queue in [New] and [Open].
type Option func(*options) error

type options struct {
	backend   backend.Backend
	own       bool // the queue closes the backend
	inMemory  bool
	forgotten bool   // neither WithBackend nor InMemory
	name      string // for Open
	random    func(n int64) int64
	clock     clockwork.Clock // nil for the store's own
	logger    *slog.Logger
	lease     time.Duration
	required  []Feature
	retention backend.Retention

	metrics    metric.MeterProvider // nil for none
	traces     trace.TracerProvider // nil for none
	propagator propagation.TextMapPropagator
}

const defaultLease = 30 * time.Second // as Amazon SQS's visibility timeout

// newOptions rejects options that New or Open cannot use, and those that contradict one another.
func newOptions(ctx context.Context, call string, opts []Option) (*options, error) {
	o := &options{
		lease: defaultLease, logger: slog.Default(), propagator: propagation.TraceContext{}, random: rand.Int64N,
		retention: backend.Retention{MaxAge: DefaultDeadLetterAge, MaxCount: DefaultDeadLetterCount},
	}
	err := cmp.Or(valid.Apply(o, opts, "option", "the result of a With… function"), valid.Context(ctx))
	switch {
	case err != nil:
		return nil, err
	case call == "Open" && (o.backend != nil || o.inMemory):
		return nil, backend.Invalid("option", valid.Described("WithBackend or InMemory"), "a URL or a backend, not both")
	case call == "New" && o.name != "":
		return nil, backend.Invalid("option", valid.Described("Named"), "Named with Open only; New has the name as an argument")
	case o.backend != nil && o.inMemory:
		return nil, backend.Invalid("option", valid.Described("InMemory"), "WithBackend or InMemory, not both")
	}
	return o, nil
}

// WithBackend puts the queue on a backend. The caller closes the backend, after the queues on it.
func WithBackend(b backend.Backend) Option {
	return func(o *options) error {
		o.backend = b
		return valid.Given("WithBackend", b, "a backend, as memory.New() returns one")
	}
}

// InMemory keeps the queue's messages in this process alone: they are gone when it ends, and at
// Close. [New] does so too without a backend, but then it logs a warning, since a forgotten
// [WithBackend] would lose messages.
func InMemory() Option {
	return func(o *options) error {
		o.inMemory = true
		return nil
	}
}

// Named gives [Open] the queue's name, for a URL that names a store alone, such as REDIS_URL. A URL
// may have the same name; a different one is an error.
func Named(queue string) Option {
	return func(o *options) error {
		if o.name = queue; queue == "" {
			return backend.Invalid("Named", queue, "a queue's name")
		}
		return nil
	}
}

// WithRandom sets the source of the random parts that [Spread] adds, as rand.NewPCG(1, 2) for the
// same ones in each run of a test. The queue makes one call of it at a time. The default is that of
// math/rand/v2.
func WithRandom(source rand.Source) Option {
	return func(o *options) error {
		o.random = guard.Random(source)
		return valid.Given("WithRandom", source, "a source, as rand.NewPCG(1, 2); leave the option out for the process's own")
	}
}

// WithLease sets how long a worker may hold a message without a sign of life, 1 ms to
// 24 h, 30 s by default. After that the message is handed out again. Consume renews the
// lease at each third of it, so that a handler may take longer.
func WithLease(d time.Duration) Option {
	return func(o *options) error {
		o.lease = d
		return valid.Lease("WithLease", d)
	}
}

// WithClock runs the queue on another clock than the store's own: clockwork.NewFakeClock in a test,
// which then passes days in no time. Lease renewal, retries and [Drain] move with that clock too. A
// backend that cannot returns [ErrUnsupported]. The memory backend needs no option inside a
// testing/synctest bubble.
func WithClock(c clockwork.Clock) Option {
	return func(o *options) error {
		o.clock = guard.Clock(c)
		return valid.Given("WithClock", c, "a clock; leave the option out for the store's own")
	}
}

// WithLogger sets where the queue logs errors that no call returns, by default [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return func(o *options) error {
		o.logger = l
		return valid.Given("WithLogger", l, "a logger; slog.New(slog.DiscardHandler) for silence")
	}
}

// WithMeterProvider sets where the queue keeps metrics, by default nowhere. Pass
// otel.GetMeterProvider() for the provider of the whole process. docs/observability.md lists the
// metrics. Where the backend can count its messages, each collection calls the store once per
// queue, and waits 5 s for it at most.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) error {
		o.metrics = p
		return valid.Given("WithMeterProvider", p, "a provider; leave the option out for no metrics")
	}
}

// WithTracerProvider makes a span for each push, and one around each message that Consume hands to
// its handler; by default there are none. Pass otel.GetTracerProvider() for the provider of the
// whole process. A message then carries the trace of its push in its headers, as [WithPropagator]
// says. The handler's context carries the handler's span, which links to the span of the push.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) error {
		o.traces = p
		return valid.Given("WithTracerProvider", p, "a provider; leave the option out for no traces")
	}
}

// WithPropagator sets the headers that messages carry from push to handler with a
// [WithTracerProvider]. The default is the W3C trace context of spans that are recorded:
// "traceparent" and "tracestate", about 70 bytes of each message. otel.GetTextMapPropagator()
// carries the process's own, such as baggage.
//
// Workers see these headers like any others. None are added where the backend keeps no headers,
// where the pusher has set one of them, or where they would exceed the limit of the message's
// headers.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(o *options) error {
		o.propagator = p
		return valid.Given("WithPropagator", p, "a propagator; leave the option out for the W3C trace context")
	}
}

// What [DeadLetterRetention] keeps unless it is given. asynq keeps 90 days and 10,000.
const (
	DefaultDeadLetterAge   = 90 * 24 * time.Hour
	DefaultDeadLetterCount = 100_000
)

// DeadLetterRetention sets which dead letters the queue keeps: those that died less than maxAge
// ago, by the store's clock, and the maxCount youngest. The others are deleted. 0 is no bound; up
// to a hundred years and 2^30 letters are allowed. The default is [DefaultDeadLetterAge] and
// [DefaultDeadLetterCount].
//
// Each process deletes by its own retention, so that the strictest one counts: give all the same.
// It looks some seconds after New or Open, then every ten minutes, and at once when it has itself
// made 1 % of maxCount dead letters, and ten at least; so the count may be exceeded by as many for
// each process. The store deletes in steps that take a few milliseconds. Without the feature
// [Redriving] nothing is deleted. The steps run by the process's clock, whatever [WithClock] says.
func DeadLetterRetention(maxAge time.Duration, maxCount int) Option {
	return func(o *options) error {
		o.retention = backend.Retention{MaxAge: maxAge, MaxCount: maxCount}
		return valid.Retention("DeadLetterRetention", o.retention)
	}
}

// Require makes [New] and [Open] fail with [ErrUnsupported] when the backend lacks one
// of the features, rather than a call at three in the morning.
func Require(fs ...Feature) Option {
	return func(o *options) error {
		for _, f := range fs {
			if !slices.Contains(backend.Features(), f) {
				return backend.Invalid("feature", int(f), "one of the Feature constants")
			}
		}
		o.required = append(o.required, fs...)
		return nil
	}
}
