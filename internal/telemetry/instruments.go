package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// The instruments of a queue, which docs/observability.md lists.
type instruments struct {
	sent, consumed, redelivered, dead, expired, trimmed, failed metric.Int64Counter
	handlers, workers                                           metric.Int64UpDownCounter
	duration, processed, lateness                               metric.Float64Histogram
}

var (
	// The conventions' own boundaries: calls of a store are short.
	operationBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

	// The same and more, since a handler may take hours.
	handlingBuckets = append(append([]float64(nil), operationBuckets...), 30, 60, 300, 900, 3600, 14400)

	// A queue that keeps up is late by milliseconds. One whose workers were away is late by hours.
	latenessBuckets = []float64{
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400,
	}
)

const unitMessage = "{message}"

func newInstruments(m metric.Meter) (*instruments, error) {
	b := builder{meter: m}
	made := &instruments{
		sent:        b.counter("messaging.client.sent.messages", unitMessage, "Number of messages producer attempted to send to the broker."),
		consumed:    b.counter("messaging.client.consumed.messages", unitMessage, "Number of messages that were delivered to the application."),
		redelivered: b.counter("delayq.redeliveries", unitMessage, "Messages handed out for the second time or a later one."),
		dead:        b.counter("delayq.dead_letters", unitMessage, "Messages that became dead letters."),
		trimmed:     b.counter("delayq.dead_letters.deleted", unitMessage, "Dead letters that the retention deleted."),
		expired:     b.counter("delayq.expired", unitMessage, "Messages that expired: deleted or made dead letters without being handed out."),
		failed:      b.counter("delayq.failures", "{failure}", "Failures of handlers, and of the store where no caller gets the error."),
		handlers:    b.upDown("delayq.handlers.running", "{handler}", "Handlers that run."),
		workers:     b.upDown("delayq.workers", "{worker}", "Workers of all Consume that run: how many handlers may run at once."),
		duration: b.histogram("messaging.client.operation.duration",
			"Duration of messaging operation initiated by a producer or consumer client.", operationBuckets),
		processed: b.histogram("messaging.process.duration", "Duration of processing operation.", handlingBuckets),
		lateness:  b.histogram("delayq.lateness", "Time from when a message was due to when it was handed out.", latenessBuckets),
	}
	return made, errors.Join(b.errs...)
}

// A builder makes instruments and collects the errors.
type builder struct {
	meter metric.Meter
	errs  []error
}

func (b *builder) counter(name, unit, description string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.errs = append(b.errs, err)
	return c
}

func (b *builder) upDown(name, unit, description string) metric.Int64UpDownCounter {
	c, err := b.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	b.errs = append(b.errs, err)
	return c
}

func (b *builder) histogram(name, description string, buckets []float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	b.errs = append(b.errs, err)
	return h
}
