package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/guard"
)

// A Pushing is a push that has started. The methods of the zero value do nothing.
type Pushing struct {
	r     *Recorder
	start time.Time
	span  trace.Span // nil without a tracer
}

// StartPush starts a push of valid messages. It may add the trace to their headers. The context is
// that of the push.
func (r *Recorder) StartPush(ctx context.Context, ms []backend.Message) (context.Context, Pushing) {
	if r == nil {
		return ctx, Pushing{}
	}
	p := Pushing{r: r, start: r.Start()}
	if r.tracer != nil {
		ctx, p.span = r.pushSpan(ctx, ms)
	}
	return ctx, p
}

// End records the error of each message, or none when all succeeded.
func (p Pushing) End(ctx context.Context, ms []backend.Message, errs ...error) {
	if p.r == nil {
		return
	}
	p.r.pushed(ctx, p.start, len(ms), errs)
	if p.span == nil {
		return
	}
	defer guard.Log(p.r.Log, tracerProvider)
	defer p.span.End()
	if len(ms) == 1 {
		p.span.SetAttributes(keyMessageID.String(ms[0].ID)) // which the store may have made
	}
	if err := firstError(errs); err != nil {
		failSpan(p.span, p.r.errorType(err), err)
	}
}
