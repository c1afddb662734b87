// Package telemetry keeps the metrics and traces of a queue through OpenTelemetry's API. It follows
// the semantic conventions for messaging where they have a name, and else uses delayq.….
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/guard"
)

const (
	scopeName = "github.com/delayq/delayq"
	schemaURL = "https://opentelemetry.io/schemas/1.41.0"

	// The log's names for user code that panicked.
	meterProvider  = "meter provider"
	tracerProvider = "tracer provider or propagator"
)

// A Config names the providers and the queue.
type Config struct {
	Queue, Backend string // names

	Meters     metric.MeterProvider // nil for no metrics
	Tracers    trace.TracerProvider // nil for no traces
	Propagator propagation.TextMapPropagator

	Clock clockwork.Clock
	Log   *slog.Logger

	// Stats counts the messages of the queue whenever metrics are collected. It is nil where the
	// backend cannot count; then there are no gauges of the queue's depth.
	Stats func(context.Context) (backend.Stats, error)

	// HeadersFit reports whether a message may have these headers. It is nil where the backend
	// keeps none; then messages carry no trace.
	HeadersFit func(map[string]string) bool

	// ErrSettled is the error of a delivery that was settled before.
	ErrSettled error
}

// A Recorder keeps the metrics and traces of a queue. The methods of a nil one do nothing. They are
// safe for concurrent use, never panic, and log a provider's panics.
type Recorder struct {
	Config
	identity   []attribute.KeyValue // of all metrics and spans
	errorTypes []namedError
	metrics    *metrics     // nil for none
	tracer     trace.Tracer // nil for none

	gauges  []metric.Registration
	closing context.Context //nolint:containedctx // Close cancels it: the SDK calls the gauges with a context of its own
	close   context.CancelFunc
}

// New returns the Recorder of a queue; nil where there are neither metrics nor traces. A provider
// that fails or panics is an error.
func New(c Config) (*Recorder, error) {
	if c.Meters == nil && c.Tracers == nil {
		return nil, nil //nolint:nilnil // no providers: the methods of a nil Recorder do nothing, so callers need no check
	}
	r := &Recorder{Config: c, errorTypes: errorTypes(c.ErrSettled), identity: []attribute.KeyValue{
		keySystem.String("delayq"), keyDestination.String(c.Queue), keyBackend.String(c.Backend),
	}}
	r.closing, r.close = context.WithCancel(context.Background())
	if c.Tracers != nil {
		err := guard.Call("tracer provider", func() {
			r.tracer = c.Tracers.Tracer(scopeName, trace.WithSchemaURL(schemaURL), trace.WithInstrumentationVersion(version()))
		})
		if err != nil {
			return nil, fmt.Errorf("making the tracer: %w", err)
		}
	}
	if c.Meters != nil {
		var err error
		if caught := guard.Call(meterProvider, func() { err = r.measure() }); caught != nil {
			err = caught
		}
		if err != nil {
			_ = r.Close()
			return nil, fmt.Errorf("making the metrics: %w", err)
		}
	}
	return r, nil
}

func (r *Recorder) measure() error {
	meter := r.Meters.Meter(scopeName, metric.WithSchemaURL(schemaURL), metric.WithInstrumentationVersion(version()))
	var err error
	if r.metrics, err = newMetrics(meter, r.identity); err != nil {
		return err
	}
	watches := []func(metric.Meter) (metric.Registration, error){r.watchLongest}
	if r.Stats != nil {
		watches = append(watches, r.watchDepth)
	}
	for _, watch := range watches {
		g, err := watch(meter)
		if err != nil {
			return err
		}
		r.gauges = append(r.gauges, g)
	}
	return nil
}

// Close ends the gauges. It does not wait for a store that a collection of metrics asks.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.close()
	var errs []error
	for _, g := range r.gauges {
		var err error
		caught := guard.Call(meterProvider, func() { err = g.Unregister() })
		errs = append(errs, err, caught)
	}
	return errors.Join(errs...)
}
