package delayq

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// The instruments of a queue, which docs/observability.md lists.
type instruments struct {
	sent, consumed, redelivered, dead, failed metric.Int64Counter
	running, workers                          metric.Int64UpDownCounter
	duration, processed, lateness             metric.Float64Histogram
}

var (
	// The conventions' own boundaries; calls of a store are short.
	operationBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

	// The same and more, since a handler may take hours.
	handlingBuckets = append(append([]float64(nil), operationBuckets...), 30, 60, 300, 900, 3600, 14400)

	// A queue that keeps up is late by milliseconds, one whose workers were away by hours.
	latenessBuckets = []float64{
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400,
	}
)

const unitMessage = "{message}"

func newInstruments(m metric.Meter) (*instruments, error) {
	f := foundry{meter: m}
	made := &instruments{
		sent:        f.counter("messaging.client.sent.messages", unitMessage, "Number of messages producer attempted to send to the broker."),
		consumed:    f.counter("messaging.client.consumed.messages", unitMessage, "Number of messages that were delivered to the application."),
		redelivered: f.counter("delayq.redeliveries", unitMessage, "Messages handed out for the second time or a later one."),
		dead:        f.counter("delayq.dead_letters", unitMessage, "Messages that became dead letters."),
		failed:      f.counter("delayq.failures", "{failure}", "Failures of handlers, and of the store where no caller hears of them."),
		running:     f.upDown("delayq.handlers.running", "{handler}", "Handlers that run."),
		workers:     f.upDown("delayq.workers", "{worker}", "Workers of all Consume that run: how many handlers may run at once."),
		duration: f.histogram("messaging.client.operation.duration",
			"Duration of messaging operation initiated by a producer or consumer client.", operationBuckets),
		processed: f.histogram("messaging.process.duration", "Duration of processing operation.", handlingBuckets),
		lateness:  f.histogram("delayq.lateness", "Time from when a message was due to when it was handed out.", latenessBuckets),
	}
	return made, errors.Join(f.errs...)
}

// A foundry makes instruments and keeps the errors of those that it could not make.
type foundry struct {
	meter metric.Meter
	errs  []error
}

func (f *foundry) counter(name, unit, description string) metric.Int64Counter {
	c, err := f.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	f.errs = append(f.errs, err)
	return c
}

func (f *foundry) upDown(name, unit, description string) metric.Int64UpDownCounter {
	c, err := f.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	f.errs = append(f.errs, err)
	return c
}

func (f *foundry) histogram(name, description string, buckets []float64) metric.Float64Histogram {
	h, err := f.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	f.errs = append(f.errs, err)
	return h
}
