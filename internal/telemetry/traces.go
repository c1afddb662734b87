package telemetry

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/guard"
)

// startSpan starts the span of an operation. The caller recovers from a panic of the provider.
func (r *Recorder) startSpan(ctx context.Context, op string, kind trace.SpanKind, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	opts = append(opts, trace.WithSpanKind(kind), trace.WithAttributes(r.identity...), trace.WithAttributes(operation(op)...))
	with, span := r.tracer.Start(ctx, op+" "+r.Queue, opts...)
	if with == nil {
		with = ctx
	}
	return with, span
}

// pushSpan starts the span of a push and adds it to the messages' headers.
func (r *Recorder) pushSpan(ctx context.Context, ms []backend.Message) (with context.Context, span trace.Span) {
	with = ctx //nolint:wastedassign // returned after a panic
	defer guard.Log(r.Log, tracerProvider)
	with, span = r.startSpan(ctx, Push, trace.SpanKindProducer)
	if span.IsRecording() {
		span.SetAttributes(pushAttributes(ms)...)
	}
	r.inject(with, ms)
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

// inject adds the propagator's fields to the messages' headers. A trace that is not recorded is not
// carried: the link would lead nowhere, and each message would pay for it while it waits.
func (r *Recorder) inject(ctx context.Context, ms []backend.Message) {
	if r.HeadersFit == nil {
		return
	}
	if !trace.SpanFromContext(ctx).IsRecording() {
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	carrier := propagation.MapCarrier{}
	r.Propagator.Inject(ctx, carrier)
	for i := range ms {
		ms[i].Headers = r.joined(ms[i].Headers, carrier)
	}
}

// joined returns the headers with the carrier's. A header that the user set is never replaced. A
// message whose headers leave no room is pushed without: its trace matters less.
func (r *Recorder) joined(headers map[string]string, carrier propagation.MapCarrier) map[string]string {
	taken := func(key string) bool { _, ok := headers[key]; return ok }
	if len(carrier) == 0 || slices.ContainsFunc(r.Propagator.Fields(), taken) {
		return headers
	}
	all := make(map[string]string, len(headers)+len(carrier))
	maps.Copy(all, carrier)
	maps.Copy(all, headers)
	if !r.HeadersFit(all) {
		return headers
	}
	return all
}

// processSpan starts the span around a handler: the root of its own trace, linked to the push. A
// child would keep the producer's trace open while the message waits, for days perhaps. It would
// also join the thousands of messages of a batch in one trace.
func (r *Recorder) processSpan(ctx context.Context, d Delivery) (with context.Context, span trace.Span) {
	with = ctx //nolint:wastedassign // returned after a panic
	defer guard.Log(r.Log, tracerProvider)
	ctx = r.extract(ctx, d)
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(
		keyMessageID.String(strings.ToValidUTF8(d.ID, "\ufffd")),
		keyBodySize.Int(d.BodySize),
		keyAttempt.Int(d.Attempt),
		keyLateness.Float64(d.Lateness.Seconds()),
	)}
	if pushed := trace.SpanContextFromContext(ctx); pushed.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: pushed}))
	}
	return r.startSpan(ctx, Process, trace.SpanKindConsumer, opts...)
}

// extract returns the context with the trace that the message carries.
func (r *Recorder) extract(ctx context.Context, d Delivery) (with context.Context) {
	with = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	defer guard.Log(r.Log, tracerProvider)
	carried := r.Propagator.Extract(with, propagation.MapCarrier(d.Headers))
	if carried != nil {
		with = carried
	}
	return with
}

// failSpan records how the operation of a span failed.
func failSpan(span trace.Span, failure string, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, failure)
	span.SetAttributes(keyErrorType.String(failure))
}
