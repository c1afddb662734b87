package delayq_test

import (
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq"
)

// A watcher keeps the metrics and spans of queues.
type watcher struct {
	reader *sdkmetric.ManualReader
	meters *sdkmetric.MeterProvider
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider

	mu   sync.Mutex
	made []string // the instruments, whether they move or not
}

func newWatcher(opts ...sdktrace.TracerProviderOption) *watcher {
	w := &watcher{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	note := func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.made = append(w.made, i.Name)
		return sdkmetric.Stream{}, false
	}
	w.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader), sdkmetric.WithResource(resource.Empty()), sdkmetric.WithView(note))
	opts = append(opts, sdktrace.WithSpanProcessor(w.spans), sdktrace.WithResource(resource.Empty()))
	w.tracer = sdktrace.NewTracerProvider(opts...)
	return w
}

func (w *watcher) metrics() delayq.Option { return delayq.WithMeterProvider(w.meters) }

func (w *watcher) traces() delayq.Option { return delayq.WithTracerProvider(w.tracer) }

// A point is one value of a metric: the number of values where it is a histogram.
type point struct {
	attributes attribute.Set
	value      float64
	sum        float64 // of a histogram
}

func (w *watcher) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	must(t, w.reader.Collect(t.Context(), &rm))
	all := make(map[string]metricdata.Metrics)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

func pointsOf(t *testing.T, m metricdata.Metrics) (ps []point) {
	t.Helper()
	switch data := m.Data.(type) {
	case nil: // nothing has been measured
	case metricdata.Sum[int64]:
		ps = plain(data.DataPoints)
	case metricdata.Gauge[int64]:
		ps = plain(data.DataPoints)
	case metricdata.Gauge[float64]:
		ps = plain(data.DataPoints)
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			ps = append(ps, point{attributes: p.Attributes, value: float64(p.Count), sum: p.Sum})
		}
	default:
		t.Fatalf("%s is a %T", m.Name, data)
	}
	return ps
}

func plain[N int64 | float64](from []metricdata.DataPoint[N]) (ps []point) {
	for _, p := range from {
		ps = append(ps, point{attributes: p.Attributes, value: float64(p.Value)})
	}
	return ps
}

// total adds up the points of a metric that have the attributes.
func (w *watcher) total(t *testing.T, name string, with ...attribute.KeyValue) (all point) {
	t.Helper()
	for _, p := range pointsOf(t, w.collect(t)[name]) {
		if has(p.attributes, with) {
			all.value += p.value
			all.sum += p.sum
		}
	}
	return all
}

func has(set attribute.Set, with []attribute.KeyValue) bool {
	for _, kv := range with {
		if got, ok := set.Value(kv.Key); !ok || got.String() != kv.Value.String() {
			return false
		}
	}
	return true
}

// wantTotal checks a counter's value, or the number of values of a histogram.
func (w *watcher) wantTotal(t *testing.T, want float64, name string, with ...attribute.KeyValue) {
	t.Helper()
	if got := w.total(t, name, with...).value; got != want {
		t.Errorf("%s%v is %v, want %v", name, with, got, want)
	}
}

func errorType(name string) attribute.KeyValue { return attribute.String("error.type", name) }

func operation(name string) attribute.KeyValue {
	return attribute.String("messaging.operation.name", name)
}

func state(name string) attribute.KeyValue { return attribute.String("delayq.state", name) }

// ended returns the spans of a kind that have ended, in order.
func (w *watcher) ended(kind trace.SpanKind) (spans []sdktrace.ReadOnlySpan) {
	for _, s := range w.spans.Ended() {
		if s.SpanKind() == kind {
			spans = append(spans, s)
		}
	}
	return spans
}

// wantSpan checks that a span has attributes.
func wantSpan(t *testing.T, s sdktrace.ReadOnlySpan, want ...attribute.KeyValue) {
	t.Helper()
	if set := attribute.NewSet(s.Attributes()...); !has(set, want) {
		t.Errorf("span %q has %v, want %v", s.Name(), set.ToSlice(), want)
	}
}
