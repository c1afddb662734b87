package delayq

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// observe sets up what the options ask for.
func (q *queue) observe(o *options) error {
	if o.traces != nil {
		if err := guarded("tracer provider", func() { q.tracer = q.newTracer(o.traces, o.propagator) }); err != nil {
			return fmt.Errorf("making the tracer: %w", err)
		}
	}
	if o.metrics == nil {
		return nil
	}
	var err error
	if caught := guarded("meter provider", func() { err = q.measure(o) }); caught != nil {
		err = caught
	}
	if err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	return nil
}

func (q *queue) measure(o *options) error {
	m := o.metrics.Meter(scopeName, metric.WithSchemaURL(schemaURL))
	var err error
	if q.meter, err = q.newMeter(m); err != nil {
		return err
	}
	return q.watch(m)
}

// watch has collections of metrics ask the queue.
func (q *queue) watch(m metric.Meter) error {
	watches := []func(metric.Meter) (metric.Registration, error){q.watchLongest}
	if q.Supports(Counting) {
		watches = append(watches, q.watchDepth)
	}
	for _, begin := range watches {
		g, err := begin(m)
		if err != nil {
			return err
		}
		q.gauges = append(q.gauges, g)
	}
	return nil
}

// unobserve ends what a collection of metrics would ask.
func (q *queue) unobserve() error {
	var errs []error
	for _, g := range q.gauges {
		var err error
		caught := guarded("meter provider", func() { err = g.Unregister() })
		errs = append(errs, err, caught)
	}
	return errors.Join(errs...)
}
