package delayq

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// observe sets up what the options ask for.
func (q *queue) observe(o *options) error {
	if o.traces != nil {
		q.tracer = q.newTracer(o.traces, o.propagator)
	}
	if o.metrics == nil {
		return nil
	}
	m := o.metrics.Meter(scopeName, metric.WithSchemaURL(schemaURL))
	var err error
	if q.meter, err = q.newMeter(m); err == nil && q.inspect != nil {
		q.gauges, err = q.watchDepth(m)
	}
	if err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	return nil
}

// unobserve ends what a collection of metrics would ask of the store.
func (q *queue) unobserve() error {
	if q.gauges == nil {
		return nil
	}
	return q.gauges.Unregister()
}
