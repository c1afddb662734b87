package delayq

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
)

// A sending is a push under way, as metrics and traces see it. The zero value is one that nobody looks at.
type sending struct {
	q     *queue
	began time.Time
	span  trace.Span // nil without a tracer
}

// sending begins a push of valid messages.
func (q *queue) sending(ctx context.Context, ms []backend.Message) (context.Context, sending) {
	if q.meter == nil && q.tracer == nil {
		return ctx, sending{}
	}
	s := sending{q: q, began: q.meter.begin()}
	if q.tracer != nil {
		ctx, s.span = q.tracer.push(ctx, ms)
	}
	return ctx, s
}

// end takes an outcome for each message, or none when all succeeded.
func (s sending) end(ctx context.Context, ms []backend.Message, errs ...error) {
	if s.q == nil {
		return
	}
	s.q.meter.pushed(ctx, s.began, len(ms), errs)
	if s.span == nil {
		return
	}
	defer s.q.tracer.guard()
	defer s.span.End()
	if len(ms) == 1 {
		s.span.SetAttributes(keyMessageID.String(ms[0].ID)) // also where the store made it
	}
	if err := firstError(errs...); err != nil {
		failSpan(s.span, errorType(err), err)
	}
}
