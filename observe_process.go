package delayq

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/internal/consumer"
)

// outcomeUnsettled is the outcome of a message that the store did not settle. It comes back when its
// lease ends.
const outcomeUnsettled = "unsettled"

// A processing is a handler's run, as metrics and traces see it. The zero value is one that nobody looks at.
type processing struct {
	q     *queue
	began time.Time
	run   uint64
	span  trace.Span // nil without a tracer
}

// processing begins a handler's run. The context is the handler's.
func (q *queue) processing(ctx context.Context, d *Delivery) (context.Context, processing) {
	if q.meter == nil && q.tracer == nil {
		return ctx, processing{}
	}
	p := processing{q: q, began: q.clock.Now()}
	if q.tracer != nil {
		ctx, p.span = q.tracer.process(ctx, d, p.began)
	}
	p.run = q.meter.handling(ctx, d, p.began)
	return ctx, p
}

// Returned notes that the handler has returned, having failed so.
func (p processing) Returned(ctx context.Context, failure string, err error) {
	if p.q == nil {
		return
	}
	p.q.meter.handled(ctx, p.run, p.began, failure)
	if p.span != nil && failure != "" {
		defer p.q.tracer.guard()
		failSpan(p.span, failure, err)
	}
}

// End notes what has become of the message, and the error of a call that did not settle it.
func (p processing) End(outcome string, unsettled error) {
	if p.span == nil {
		return
	}
	defer p.q.tracer.guard()
	if unsettled != nil {
		outcome = outcomeUnsettled
		failSpan(p.span, consumer.FailedSettle, unsettled)
	}
	p.span.SetAttributes(keyOutcome.String(outcome))
	p.span.End()
}
