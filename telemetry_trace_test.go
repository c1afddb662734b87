package delayq_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

// consumeOne has a handler take the due message, and returns the delivery.
func consumeOne(t *testing.T, q delayq.Queue, h delayq.Handler) (got *delayq.Delivery) {
	t.Helper()
	done := make(chan struct{})
	r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
		defer close(done)
		got = d
		return h(ctx, d)
	}, every(time.Hour))
	<-done
	must(t, r.end())
	return got
}

func TestTraceFromPushToHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.traces())
		ctx, request := w.tracer.Tracer("test").Start(t.Context(), "request")
		_, err := q.Push(ctx, []byte("body"), delayq.ID("17"), delayq.After(time.Hour))
		must(t, err)
		request.End()
		time.Sleep(time.Hour + 2*time.Second)
		var inside trace.SpanContext
		d := consumeOne(t, q, func(ctx context.Context, _ *delayq.Delivery) error {
			inside = trace.SpanContextFromContext(ctx)
			return nil
		})

		pushed, handled := w.ended(trace.SpanKindProducer)[0], w.ended(trace.SpanKindConsumer)[0]
		if pushed.Name() != "push orders" || handled.Name() != "process orders" {
			t.Errorf("spans %q and %q", pushed.Name(), handled.Name())
		}
		if pushed.Parent().SpanID() != request.SpanContext().SpanID() {
			t.Error("the push is no child of the request")
		}
		if handled.Parent().IsValid() || handled.SpanContext().TraceID() == pushed.SpanContext().TraceID() {
			t.Error("the handler's span is not the root of a trace of its own")
		}
		if !inside.Equal(handled.SpanContext()) {
			t.Error("the handler's context does not have its span")
		}
		wantLink(t, handled, pushed)
		if !strings.Contains(d.Headers["traceparent"], pushed.SpanContext().SpanID().String()) {
			t.Errorf("headers %v, want the push in traceparent", d.Headers)
		}
		if s := handled.Status().Code; s != codes.Unset {
			t.Errorf("status %v of a handler that succeeded", s)
		}
		common := []attribute.KeyValue{
			attribute.String("messaging.system", "delayq"), attribute.String("messaging.destination.name", "orders"),
			attribute.String("delayq.backend", "memory"), attribute.String("messaging.message.id", "17"),
			attribute.Int("messaging.message.body.size", 4),
		}
		wantSpan(t, pushed, append(common, operation("push"), attribute.String("messaging.operation.type", "send"),
			attribute.Float64("delayq.delay", 3600))...)
		wantSpan(t, handled, append(common, operation("process"), attribute.String("messaging.operation.type", "process"),
			attribute.Int("delayq.attempt", 1), attribute.Float64("delayq.lateness", 2), outcome("acked"))...)
	})
}

func outcome(name string) attribute.KeyValue { return attribute.String("delayq.outcome", name) }

// wantLink checks that a span has one link, to another.
func wantLink(t *testing.T, s, to sdktrace.ReadOnlySpan) {
	t.Helper()
	links := s.Links()
	if len(links) != 1 || links[0].SpanContext.SpanID() != to.SpanContext().SpanID() || links[0].SpanContext.TraceID() != to.SpanContext().TraceID() {
		t.Errorf("span %q links to %+v, want one to %q", s.Name(), links, to.Name())
	}
}

// All messages of a batch, and all attempts, link to the one push.
func TestTraceOfABatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.traces())
		headers := map[string]string{"k": "v"}
		_, err := q.PushBatch(t.Context(), []delayq.Message{{ID: "a", Headers: headers}, {ID: "b", Due: time.Now().Add(time.Second)}})
		must(t, err)
		if len(headers) != 1 {
			t.Errorf("the pusher's headers are %v now", headers)
		}
		consume(t, q, time.Hour, func(_ context.Context, d *delayq.Delivery) error {
			if d.Attempt == 1 {
				return errHandler
			}
			return nil
		}, every(time.Minute))
		pushed := w.ended(trace.SpanKindProducer)
		if len(pushed) != 1 {
			t.Fatalf("%d spans of a push, want 1", len(pushed))
		}
		wantSpan(t, pushed[0], attribute.Int("messaging.batch.message_count", 2))
		handled := w.ended(trace.SpanKindConsumer)
		if len(handled) != 4 {
			t.Fatalf("%d spans of handlers, want 4", len(handled))
		}
		for _, s := range handled {
			wantLink(t, s, pushed[0])
		}
	})
}

func TestTraceOfAPushThatFails(t *testing.T) {
	t.Parallel()
	w := newWatcher()
	q := newQueue(t, w.traces())
	push(t, q, delayq.ID("a"))
	_, err := q.Push(t.Context(), nil, delayq.ID("a"))
	wantIs(t, err, delayq.ErrDuplicate)
	if failed := w.ended(trace.SpanKindProducer)[1]; failed.Status().Code != codes.Error {
		t.Errorf("status %+v of a push that failed", failed.Status())
	} else {
		wantSpan(t, failed, errorType("duplicate"))
	}
}

// A trace that cannot be added to the headers fails no push.
func TestTraceStaysOutOfTheHeaders(t *testing.T) {
	const mine = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	full := strings.Repeat("v", backend.MaxHeaders-backend.HeaderCost-1)
	noHeaders := newSeam()
	noHeaders.traits = lacking(backend.KeepingHeaders)
	type test struct {
		watcher *watcher
		options []delayq.Option
		headers map[string]string
	}
	queuetest.Cases(t, map[string]test{
		"no recording":           {newWatcher(sdktrace.WithSampler(sdktrace.NeverSample())), nil, nil},
		"no headers":             {newWatcher(), []delayq.Option{noHeaders.option()}, nil},
		"the pusher's own":       {newWatcher(), nil, map[string]string{"traceparent": mine}},
		"the pusher's own state": {newWatcher(), nil, map[string]string{"tracestate": "a=b"}},
		"no room":                {newWatcher(), nil, map[string]string{"k": full}},
	}, func(t *testing.T, tt test) {
		q := newQueue(t, append(tt.options, tt.watcher.traces())...)
		_, err := q.PushBatch(t.Context(), []delayq.Message{{Headers: maps.Clone(tt.headers)}})
		must(t, err)
		d := consumeOne(t, q, returning(nil))
		if !maps.Equal(d.Headers, tt.headers) {
			t.Errorf("headers %.100v, want %.100v", d.Headers, tt.headers)
		}
	})
}

// The handler's span links to the pusher's own trace context, and to nothing where a header is no
// trace context.
func TestTraceOfThePushersOwn(t *testing.T) {
	type test struct{ header, want string }
	queuetest.Cases(t, map[string]test{
		"sound": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "b7ad6b7169203331"},
		"bad":   {"\x00\xff", ""},
	}, func(t *testing.T, tt test) {
		w := newWatcher()
		q := newQueue(t, w.traces())
		push(t, q, delayq.Header("traceparent", tt.header))
		consumeOne(t, q, returning(nil))
		got := ""
		for _, link := range w.ended(trace.SpanKindConsumer)[0].Links() {
			got += link.SpanContext.SpanID().String()
		}
		if got != tt.want {
			t.Errorf("the span links to %q, want %q", got, tt.want)
		}
	})
}

// Baggage travels when it is asked for, whether the trace is recorded or not.
func TestBaggage(t *testing.T) {
	t.Parallel()
	for name, sampler := range map[string]sdktrace.Sampler{"recorded": sdktrace.AlwaysSample(), "not recorded": sdktrace.NeverSample()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatcher(sdktrace.WithSampler(sampler))
			both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
			q := newQueue(t, w.traces(), delayq.WithPropagator(both))
			tenant, err := baggage.NewMember("tenant", "7")
			must(t, err)
			bag, err := baggage.New(tenant)
			must(t, err)
			_, err = q.Push(baggage.ContextWithBaggage(t.Context(), bag), nil)
			must(t, err)
			var got string
			d := consumeOne(t, q, func(ctx context.Context, _ *delayq.Delivery) error {
				got = baggage.FromContext(ctx).Member("tenant").Value()
				return nil
			})
			if got != "7" {
				t.Errorf("the handler has baggage %q, want that of the push", got)
			}
			if _, traced := d.Headers["traceparent"]; traced != (name == "recorded") {
				t.Errorf("headers %v", d.Headers)
			}
		})
	}
}

// Without a provider nothing is added, and the handler's context has the values of Consume's
// context.
func TestNoTraceWithoutAProvider(t *testing.T) {
	t.Parallel()
	w := newWatcher()
	q := newQueue(t)
	ctx, span := w.tracer.Tracer("test").Start(t.Context(), "request")
	_, err := q.Push(ctx, nil)
	must(t, err)
	span.End()
	if d := consumeOne(t, q, returning(nil)); d.Headers != nil {
		t.Errorf("headers %v", d.Headers)
	}
	if n := len(w.spans.Ended()); n != 1 {
		t.Errorf("%d spans, want the request's alone", n)
	}
}
