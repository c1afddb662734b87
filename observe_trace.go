package delayq

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
)

// A tracer makes the spans of a queue. There is none without a provider.
type tracer struct {
	from       trace.Tracer
	propagator propagation.TextMapPropagator
	headers    bool // messages have them
	identity   []attribute.KeyValue
	name       string
	log        *slog.Logger
}

func (q *queue) newTracer(from trace.TracerProvider, p propagation.TextMapPropagator) *tracer {
	return &tracer{
		from:       from.Tracer(scopeName, trace.WithSchemaURL(schemaURL)),
		propagator: p,
		headers:    q.Supports(Headers),
		identity:   q.identity(),
		name:       q.name,
		log:        q.log,
	}
}

// start begins a span. With a message for each span, its id does no harm, as it would in a metric.
func (t *tracer) start(ctx context.Context, op string, kind trace.SpanKind, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	opts = append(opts, trace.WithSpanKind(kind), trace.WithAttributes(t.identity...), trace.WithAttributes(operation(op)...))
	with, span := t.from.Start(ctx, op+" "+t.name, opts...)
	if with == nil {
		with = ctx
	}
	return with, span
}

// guard ends a panic of the user's tracer provider or propagator.
func (t *tracer) guard() {
	if v := recover(); v != nil {
		logPanic(t.log, "tracer provider or propagator", v)
	}
}

// push begins the span of a push and has the messages carry it.
func (t *tracer) push(ctx context.Context, ms []backend.Message) (with context.Context, span trace.Span) {
	with = ctx
	defer t.guard()
	with, span = t.start(ctx, opPush, trace.SpanKindProducer)
	if span.IsRecording() {
		span.SetAttributes(pushAttributes(ms)...)
	}
	t.inject(with, ms)
	return with, span
}

func pushAttributes(ms []backend.Message) []attribute.KeyValue {
	if len(ms) != 1 {
		return []attribute.KeyValue{keyBatchSize.Int(len(ms))}
	}
	kvs := []attribute.KeyValue{keyBodySize.Int(len(ms[0].Body))}
	if ms[0].Due.IsZero() {
		return append(kvs, keyDelay.Float64(ms[0].Delay.Seconds()))
	}
	return append(kvs, keyDue.String(ms[0].Due.UTC().Format(time.RFC3339Nano)))
}

// inject puts what the propagator carries into the messages' headers. A trace that is not recorded is not carried: nobody could
// follow the link, and each message would pay for it as long as it waits.
func (t *tracer) inject(ctx context.Context, ms []backend.Message) {
	if !t.headers {
		return
	}
	if !trace.SpanFromContext(ctx).IsRecording() {
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	for i := range ms {
		ms[i].Headers = t.joined(ms[i].Headers, carrier)
	}
}

// joined returns the headers with those of the carrier. What the user set stays, and a message whose headers leave no room goes
// without: its trace matters less than the push.
func (t *tracer) joined(headers map[string]string, carrier propagation.MapCarrier) map[string]string {
	taken := func(key string) bool { _, ok := headers[key]; return ok }
	if len(carrier) == 0 || slices.ContainsFunc(t.propagator.Fields(), taken) {
		return headers
	}
	all := make(map[string]string, len(headers)+len(carrier))
	maps.Copy(all, carrier)
	maps.Copy(all, headers)
	if validHeaders(all) != nil {
		return headers
	}
	return all
}

// process begins the span around a handler: the root of a trace of its own, with a link to the push. A child would keep the
// producer's trace open for as long as the message waits, days perhaps, and join thousands of messages of a batch in one.
func (t *tracer) process(ctx context.Context, d *Delivery, now time.Time) (with context.Context, span trace.Span) {
	with = ctx
	defer t.guard()
	ctx = t.extract(ctx, d)
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(
		keyMessageID.String(strings.ToValidUTF8(d.ID, "\ufffd")),
		keyBodySize.Int(len(d.Body)),
		keyAttempt.Int(d.Attempt),
		keyLateness.Float64(d.lease.Late(d.Due, now).Seconds()),
	)}
	if pushed := trace.SpanContextFromContext(ctx); pushed.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: pushed}))
	}
	return t.start(ctx, opProcess, trace.SpanKindConsumer, opts...)
}

// extract returns the context with what the message carries.
func (t *tracer) extract(ctx context.Context, d *Delivery) (with context.Context) {
	with = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	defer t.guard()
	carried := t.propagator.Extract(with, propagation.MapCarrier(d.Headers))
	if carried != nil {
		with = carried
	}
	return with
}

// failSpan notes on a span how what it stands for failed.
func failSpan(span trace.Span, kind string, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, kind)
	span.SetAttributes(keyErrorType.String(kind))
}
