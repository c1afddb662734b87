package check

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/delayq/delayq"
)

// measured opens a queue whose metrics Prometheus reads from the handler.
func measured(ctx context.Context, url string) (delayq.Queue, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	q, err := delayq.Open(ctx, url, delayq.WithMeterProvider(provider))
	return q, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

var exported = regexp.MustCompile(`(?m)^((?:delayq|messaging)\w+)\{`)

// What the wiring of docs/production.md exports has the names that the dashboard and the alerts use.
func TestExporter(t *testing.T) {
	q, handler, err := measured(t.Context(), "memory:///exporter")
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if _, err := q.Push(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Consume(ctx, func(context.Context, *delayq.Delivery) error { stop(); return nil }); err != nil {
		t.Fatal(err)
	}

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	page, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	c, seen := newCatalogue(t), []string{}
	for _, m := range exported.FindAllStringSubmatch(string(page), -1) {
		seen = append(seen, m[1])
		if _, ok := c.metrics[m[1]]; !ok {
			t.Errorf("the exporter has %s, which docs/observability.md has not", m[1])
		}
	}
	for _, name := range []string{"delayq_lateness_seconds_bucket", "delayq_messages", "delayq_dead_letters_total", "messaging_process_duration_seconds_bucket"} {
		if !slices.Contains(seen, name) {
			t.Errorf("the exporter lacks %s: %q", name, slices.Compact(seen))
		}
	}
}
