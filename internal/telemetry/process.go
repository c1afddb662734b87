package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/internal/guard"
)

// A Processing is a handler that runs for one message. The methods of the zero value do nothing.
type Processing struct {
	r     *Recorder
	start time.Time
	run   uint64
	span  trace.Span // nil without a tracer
}

// StartProcess starts a handler's run at a time of the queue's clock. The context is the handler's.
func (r *Recorder) StartProcess(ctx context.Context, d Delivery, now time.Time) (context.Context, Processing) {
	if r == nil {
		return ctx, Processing{}
	}
	p := Processing{r: r, start: now}
	if r.tracer != nil {
		ctx, p.span = r.processSpan(ctx, d)
	}
	r.Delivered(ctx, Process, d)
	if r.measures() {
		p.run = r.metrics.running.start(now)
		r.addHandlers(ctx, 1)
	}
	return ctx, p
}

func (r *Recorder) addHandlers(ctx context.Context, n int64) {
	defer guard.Log(r.Log, meterProvider)
	r.metrics.handlers.Add(ctx, n, r.metrics.plain.add...)
}

// Returned records that the handler has returned. failure is one of the failures, "" for success.
func (p Processing) Returned(ctx context.Context, failure string, err error) {
	if p.r == nil {
		return
	}
	if p.r.measures() {
		p.r.handlerReturned(ctx, p, failure)
	}
	if p.span != nil && failure != "" {
		defer guard.Log(p.r.Log, tracerProvider)
		failSpan(p.span, failure, err)
	}
}

func (r *Recorder) handlerReturned(ctx context.Context, p Processing, failure string) {
	m := r.metrics
	m.running.end(p.run)
	r.addHandlers(ctx, -1)
	defer guard.Log(r.Log, meterProvider)
	m.processed.Record(ctx, r.since(p.start), m.of(Process, failure).record...)
	if failure != "" && failure != FailedLeaseLost { // recorded when the lease was lost
		r.Failed(ctx, failure, 1)
	}
}

// End records the outcome of the message. notSettled is the store's error if it did not take the
// outcome.
func (p Processing) End(outcome string, notSettled error) {
	if p.span == nil {
		return
	}
	defer guard.Log(p.r.Log, tracerProvider)
	if notSettled != nil {
		outcome = OutcomeUnsettled
		failSpan(p.span, FailedSettle, notSettled)
	}
	p.span.SetAttributes(keyOutcome.String(outcome))
	p.span.End()
}
