package delayq_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq"
)

// The handler's span is in a trace of its own and links to the push, which may have been days ago.
func ExampleWithTracerProvider() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))

	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithTracerProvider(provider))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	if _, err := q.Push(ctx, nil); err != nil {
		panic(err)
	}
	err = q.Consume(ctx, func(ctx context.Context, _ *delayq.Delivery) error {
		fmt.Println("handled in a span:", trace.SpanContextFromContext(ctx).IsValid())
		stop()
		return nil
	})
	if err != nil {
		panic(err)
	}

	spans := recorder.Ended()
	push, process := spans[0], spans[1]
	fmt.Println(push.Name())
	fmt.Println(process.Name(), "links to the push:", process.Links()[0].SpanContext.SpanID() == push.SpanContext().SpanID())
	// Output:
	// handled in a span: true
	// push orders
	// process orders links to the push: true
}

// With Receive the program makes the span, with a link to the push, which the headers carry.
func ExampleWithTracerProvider_receive() {
	ctx := context.Background()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))

	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithTracerProvider(provider))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	if _, err := q.Push(ctx, nil); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	pushed := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(d.Headers))
	ctx, span := provider.Tracer("shop").Start(ctx, "ship", trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(pushed)))
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	span.End()

	for _, s := range recorder.Ended() {
		fmt.Println(s.Name(), "with links:", len(s.Links()))
	}
	// Output:
	// push orders with links: 0
	// ship with links: 1
}
