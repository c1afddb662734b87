package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/delayq/delayq/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errSettled = errors.New("settled")

// config returns what New needs without providers.
func config(clock clockwork.Clock) Config {
	return Config{
		Queue: "orders", Backend: "memory", Clock: clock, Log: slog.New(slog.DiscardHandler),
		Propagator: propagation.TraceContext{}, ErrSettled: errSettled,
		HeadersFit: func(h map[string]string) bool { return len(h) <= 2 },
	}
}

func newRecorder(t *testing.T, c Config) *Recorder {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// values returns the sum of each metric, or the count of a histogram.
func values(t *testing.T, reader *sdkmetric.ManualReader) map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					all[m.Name] += float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					all[m.Name] += float64(p.Count)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					all[m.Name] += p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					all[m.Name] += float64(p.Value)
				}
			}
		}
	}
	return all
}

// use calls every method as a queue does: a push, a delivery, a handler that fails.
func use(ctx context.Context, r *Recorder, now time.Time) {
	defer r.AddWorkers(2)()
	ms := []backend.Message{{Headers: map[string]string{"k": "v"}}}
	ctx, push := r.StartPush(ctx, ms)
	push.End(ctx, ms, errSettled)
	start := r.Start()
	r.Operation(ctx, Extend, start, nil)
	r.Settled(ctx, Dead, 3, start, nil)
	r.Delivered(ctx, Receive, Delivery{Attempt: 1}, Delivery{Attempt: 2})
	ctx, p := r.StartProcess(ctx, Delivery{Headers: ms[0].Headers}, now)
	p.Returned(ctx, FailedPanic, errSettled)
	p.End(OutcomeRetried, nil)
	r.Failed(ctx, FailedRenew, 4)
}

func TestNilRecorderDoesNothing(t *testing.T) {
	t.Parallel()
	r, err := New(config(clockwork.NewFakeClock()))
	if r != nil || err != nil {
		t.Fatalf("New without providers returns %v, %v", r, err)
	}
	use(t.Context(), r, time.Now())
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if start := r.Start(); !start.IsZero() {
		t.Errorf("Start returns %v", start)
	}
}

func TestMetricsAlone(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	c := config(clockwork.NewFakeClock())
	c.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	r := newRecorder(t, c)
	use(t.Context(), r, c.Clock.Now())
	want := map[string]float64{
		"messaging.client.sent.messages":      1,
		"messaging.client.consumed.messages":  3,
		"messaging.client.operation.duration": 3, // push, extend, dead
		"messaging.process.duration":          1,
		"delayq.redeliveries":                 1,
		"delayq.dead_letters":                 3,
		"delayq.failures":                     5, // 4 and the panic
		"delayq.handlers.running":             0,
		"delayq.handlers.longest":             0,
		"delayq.workers":                      0,
		"delayq.lateness":                     3,
	}
	if got := values(t, reader); !maps.Equal(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
}

func TestTracesAlone(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	c := config(clockwork.NewFakeClock())
	c.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	use(t.Context(), newRecorder(t, c), c.Clock.Now())
	ended := spans.Ended()
	if len(ended) != 2 || ended[0].Name() != "push orders" || ended[1].Name() != "process orders" {
		t.Fatalf("spans %v, want a push and a process", ended)
	}
	if links := ended[1].Links(); len(links) != 1 || links[0].SpanContext.SpanID() != ended[0].SpanContext().SpanID() {
		t.Errorf("the process links to %v, want the push", links)
	}
	if kind := ended[1].Status().Description; kind != FailedPanic {
		t.Errorf("status %q, want %q", kind, FailedPanic)
	}
}

func TestTraceIsAddedToHeadersThatLeaveRoom(t *testing.T) {
	t.Parallel()
	c := config(clockwork.NewFakeClock())
	c.Tracers = sdktrace.NewTracerProvider()
	for name, tt := range map[string]struct {
		headers map[string]string
		want    bool
	}{
		"none":               {nil, true},
		"room":               {map[string]string{"k": "v"}, true},
		"no room":            {map[string]string{"a": "", "b": ""}, false},
		"user's traceparent": {map[string]string{"traceparent": "mine"}, false},
		"user's tracestate":  {map[string]string{"tracestate": "mine"}, false},
	} {
		before := maps.Clone(tt.headers)
		ms := []backend.Message{{Headers: tt.headers}}
		_, push := newRecorder(t, c).StartPush(t.Context(), ms)
		push.End(t.Context(), ms)
		if added := len(ms[0].Headers) > len(before); added != tt.want {
			t.Errorf("%s: headers %v, trace added %t, want %t", name, ms[0].Headers, added, tt.want)
		}
		if !maps.Equal(tt.headers, before) {
			t.Errorf("%s: the caller's map is changed to %v", name, tt.headers)
		}
	}
	c.HeadersFit = nil
	ms := []backend.Message{{}}
	newRecorder(t, c).StartPush(t.Context(), ms)
	if ms[0].Headers != nil {
		t.Errorf("headers %v on a backend that keeps none", ms[0].Headers)
	}
}

func TestErrorTypes(t *testing.T) {
	t.Parallel()
	r := &Recorder{errorTypes: errorTypes(errSettled)}
	for want, err := range map[string]error{
		"settled":    fmt.Errorf("ack: %w", errSettled),
		"lease_lost": errors.Join(errSettled, backend.ErrLeaseLost), // of a batch
		"canceled":   errors.Join(backend.ErrOutcomeUnknown, context.Canceled),
		"_OTHER":     errors.New("something else"),
	} {
		if got := r.errorType(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func TestLongestHandler(t *testing.T) {
	t.Parallel()
	var r running
	now := time.Now()
	first, second := r.start(now), r.start(now.Add(time.Minute))
	for i, tt := range []struct {
		end  uint64
		want time.Duration
	}{{0, time.Hour}, {first, time.Hour - time.Minute}, {second, 0}} {
		r.end(tt.end)
		if d := r.longest(now.Add(time.Hour)); d != tt.want {
			t.Errorf("step %d: %v, want %v", i, d, tt.want)
		}
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	c := config(clockwork.NewFakeClock())
	c.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	c.Stats = func(context.Context) (backend.Stats, error) {
		return backend.Stats{Scheduled: 1, Ready: 2, HeadDue: c.Clock.Now().Add(-time.Minute)}, nil
	}
	r := newRecorder(t, c)
	got := values(t, reader)
	if got["delayq.messages"] != 3 || got["delayq.oldest_due.age"] != 60 {
		t.Errorf("metrics %v, want 3 messages, the oldest of 60 s", got)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n, ok := values(t, reader)["delayq.messages"]; ok {
		t.Errorf("a closed Recorder counts %v messages", n)
	}
}

func TestCloseEndsACollectionThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		c := config(clockwork.NewRealClock())
		c.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		c.Stats = func(ctx context.Context) (backend.Stats, error) {
			<-ctx.Done()
			return backend.Stats{}, ctx.Err()
		}
		r := newRecorder(t, c)
		start, ended := time.Now(), make(chan error, 1)
		go func() { ended <- reader.Collect(context.Background(), new(metricdata.ResourceMetrics)) }()
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the collection fails with %v", err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("Close waited %v for the store", took)
		}
	})
}
