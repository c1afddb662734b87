package delayq

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// What becomes of a message that a handler has had.
const (
	outcomeAcked     = "acked"
	outcomeRetried   = "retried"
	outcomeDead      = "dead"
	outcomeDropped   = "dropped"
	outcomeReturned  = "returned"  // untouched, since the consumer stops
	outcomeSettled   = "settled"   // by the handler itself
	outcomeLost      = "lost"      // its lease was lost
	outcomeUnsettled = "unsettled" // the store did not take the outcome; it comes back when the lease ends
)

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

// returned notes that the handler has, having failed so.
func (p processing) returned(ctx context.Context, failure string, err error) {
	if p.q == nil {
		return
	}
	p.q.meter.handled(ctx, p.run, p.began, failure)
	if p.span != nil && failure != "" {
		defer p.q.tracer.guard()
		failSpan(p.span, failure, err)
	}
}

// end notes what has become of the message, and why the store did not take that.
func (p processing) end(outcome string, unsettled error) {
	if p.span == nil {
		return
	}
	defer p.q.tracer.guard()
	if unsettled != nil {
		outcome = outcomeUnsettled
		failSpan(p.span, failedSettle, unsettled)
	}
	p.span.SetAttributes(keyOutcome.String(outcome))
	p.span.End()
}
