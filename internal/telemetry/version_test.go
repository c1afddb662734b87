package telemetry

import (
	"runtime/debug"
	"testing"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestVersionIn(t *testing.T) {
	t.Parallel()
	ours := func(version string) *debug.Module { return &debug.Module{Path: scopeName, Version: version} }
	for name, tt := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a dependency":      {debug.BuildInfo{Main: debug.Module{Path: "shop", Version: "v3.0.0"}, Deps: []*debug.Module{{Path: "a", Version: "v9.0.0"}, ours("v1.2.3")}}, "v1.2.3"},
		"the program":       {debug.BuildInfo{Main: *ours("(devel)")}, "(devel)"},
		"replaced":          {debug.BuildInfo{Deps: []*debug.Module{{Path: scopeName, Version: "v1.2.3", Replace: &debug.Module{Path: "fork", Version: "v1.2.4"}}}}, "v1.2.4"},
		"a checkout":        {debug.BuildInfo{Deps: []*debug.Module{{Path: scopeName, Version: "v1.2.3", Replace: &debug.Module{Path: "../delayq"}}}}, ""},
		"without a version": {debug.BuildInfo{Main: debug.Module{Path: "command-line-arguments"}}, ""},
	} {
		if got := versionIn(&tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Metrics and spans have the version in their scope.
func TestScopeHasTheVersion(t *testing.T) {
	before := version
	version = func() string { return "v1.2.3" }
	defer func() { version = before }()
	reader, spans := metric.NewManualReader(), tracetest.NewSpanRecorder()
	r, err := New(Config{
		Clock:   clockwork.NewRealClock(),
		Meters:  metric.NewMeterProvider(metric.WithReader(reader)),
		Tracers: trace.NewTracerProvider(trace.WithSpanProcessor(spans)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	r.Operation(t.Context(), Cancel, r.Start(), nil)
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil || len(rm.ScopeMetrics) != 1 || rm.ScopeMetrics[0].Scope.Version != "v1.2.3" {
		t.Errorf("metrics %+v, error %v", rm.ScopeMetrics, err)
	}
	_, span := r.tracer.Start(t.Context(), "span")
	span.End()
	if got := spans.Ended()[0].InstrumentationScope().Version; got != "v1.2.3" {
		t.Errorf("spans have the version %q", got)
	}
}
