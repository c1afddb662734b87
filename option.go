package delayq

import (
	"log/slog"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
)

// Option sets up a queue in [New] and [Open].
type Option func(*options) error

type options struct {
	backend  backend.Backend
	clock    clockwork.Clock
	logger   *slog.Logger
	lease    time.Duration
	required []Feature

	metrics    metric.MeterProvider // nil for none
	traces     trace.TracerProvider // nil for none
	propagator propagation.TextMapPropagator
}

const defaultLease = 30 * time.Second // as Amazon SQS's visibility timeout

func newOptions(opts []Option) (*options, error) {
	o := &options{lease: defaultLease, logger: slog.Default(), propagator: propagation.TraceContext{}}
	for _, set := range opts {
		if set == nil {
			return nil, backend.Invalid("option", described("nil"), "the result of a With… function")
		}
		if err := set(o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// WithBackend puts the queue on a backend. The caller closes the backend, after the
// queues on it.
func WithBackend(b backend.Backend) Option {
	return func(o *options) error {
		if b == nil {
			return backend.Invalid("WithBackend", described("nil"), "a backend, as memory.New() returns one")
		}
		o.backend = b
		return nil
	}
}

// WithLease sets how long a worker may hold a message without a sign of life, 1 ms to
// 24 h, 30 s by default. After that the message is handed out again. Consume renews the
// lease at each third of it, so that a handler may take longer.
func WithLease(d time.Duration) Option {
	return func(o *options) error {
		o.lease = d
		return validLease("WithLease", d)
	}
}

// WithClock runs the queue on another clock than the store's own: clockwork.NewFakeClock
// in a test, which then passes days in no time. Lease renewal, retries and [Drain] move with
// that clock too. A backend that cannot answers [ErrUnsupported]. The memory backend needs no option
// inside a testing/synctest bubble.
func WithClock(c clockwork.Clock) Option {
	return func(o *options) error {
		if c == nil {
			return backend.Invalid("WithClock", described("nil"), "a clock; leave the option out for the store's own")
		}
		o.clock = c
		return nil
	}
}

// WithLogger sets where the queue logs what no caller can be told, by default
// [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return func(o *options) error {
		if l == nil {
			return backend.Invalid("WithLogger", described("nil"), "a logger; slog.New(slog.DiscardHandler) for silence")
		}
		o.logger = l
		return nil
	}
}

// WithMeterProvider has the queue keep metrics there, by default nowhere: otel.GetMeterProvider() for those of the whole
// process. docs/observability.md lists them. Where the backend can count its messages, each collection asks the store once
// for each queue, and waits 5 s for it at most.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) error {
		if p == nil {
			return backend.Invalid("WithMeterProvider", described("nil"), "a provider; leave the option out for no metrics")
		}
		o.metrics = p
		return nil
	}
}

// WithTracerProvider has the queue make a span for each push, and one around each message that Consume hands to its handler,
// by default none: otel.GetTracerProvider() for those of the whole process. A message then carries the trace of its push in its
// headers, as [WithPropagator] says, and the span of the handler, whose context has it, links to that of the push.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(o *options) error {
		if p == nil {
			return backend.Invalid("WithTracerProvider", described("nil"), "a provider; leave the option out for no traces")
		}
		o.traces = p
		return nil
	}
}

// WithPropagator sets what messages carry from push to handler where there is a [WithTracerProvider], by default the W3C trace
// context of spans that are recorded: the headers "traceparent" and "tracestate", about 70 bytes of each message for as long as
// it waits. otel.GetTextMapPropagator() carries what the process carries elsewhere, baggage perhaps.
//
// Workers see these headers as any others. None are added where the backend keeps no headers, where the pusher has set one of
// them, or where they would take the message's headers beyond their limit.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(o *options) error {
		if p == nil {
			return backend.Invalid("WithPropagator", described("nil"), "a propagator; leave the option out for the W3C trace context")
		}
		o.propagator = p
		return nil
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
