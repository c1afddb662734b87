package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/delayq/delayq/internal/guard"
)

// metrics are the instruments of a queue and the attributes of its time series.
type metrics struct {
	*instruments
	running running

	identity   []attribute.KeyValue
	plain      series            // without further attributes
	operations map[string]series // that succeeded
	first      series            // of a first attempt
	again      series            // of a later one
	failures   map[string]series
}

// A series is the attributes of a time series, put together once and not for each message.
type series struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newSeries(groups ...[]attribute.KeyValue) series {
	set := metric.WithAttributeSet(attribute.NewSet(slices.Concat(groups...)...))
	return series{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}

func newMetrics(from metric.Meter, identity []attribute.KeyValue) (*metrics, error) {
	made, err := newInstruments(from)
	if err != nil {
		return nil, err
	}
	m := &metrics{
		instruments: made,
		identity:    identity,
		plain:       newSeries(identity),
		operations:  make(map[string]series),
		first:       newSeries(identity, []attribute.KeyValue{keyRedelivered.Bool(false)}),
		again:       newSeries(identity, []attribute.KeyValue{keyRedelivered.Bool(true)}),
		failures:    make(map[string]series),
	}
	for op := range operationTypes {
		m.operations[op] = newSeries(identity, operation(op))
	}
	for _, kind := range FailureKinds {
		m.failures[kind] = newSeries(identity, []attribute.KeyValue{keyErrorType.String(kind)})
	}
	m.dead.Add(context.Background(), 0, m.plain.add...) // see AddWorkers
	m.redelivered.Add(context.Background(), 0, m.plain.add...)
	m.expired.Add(context.Background(), 0, m.plain.add...)
	m.trimmed.Add(context.Background(), 0, m.plain.add...)
	return m, nil
}

// of returns the series of an operation that failed with an error of that type; "" for success.
func (m *metrics) of(op, failure string) series {
	if failure == "" {
		return m.operations[op]
	}
	return newSeries(m.identity, operation(op), []attribute.KeyValue{keyErrorType.String(failure)})
}

func (r *Recorder) measures() bool { return r != nil && r.metrics != nil }

func (r *Recorder) since(start time.Time) float64 { return r.Clock.Now().Sub(start).Seconds() }

// Start returns the time at which an operation starts; the zero time without metrics.
func (r *Recorder) Start() (now time.Time) {
	if r.measures() {
		now = r.Clock.Now()
	}
	return now
}

// Operation records a call of the store that a user made.
func (r *Recorder) Operation(ctx context.Context, op string, start time.Time, err error) {
	if !r.measures() {
		return
	}
	defer guard.Log(r.Log, meterProvider)
	failure := ""
	if err != nil {
		failure = r.errorType(err)
	}
	r.metrics.duration.Record(ctx, r.since(start), r.metrics.of(op, failure).record...)
}

// Settled records a call, by the user or a consumer, that settled n messages.
func (r *Recorder) Settled(ctx context.Context, op string, n int, start time.Time, err error) {
	r.Operation(ctx, op, start, err)
	if r.measures() && op == Dead && n > 0 {
		defer guard.Log(r.Log, meterProvider)
		r.metrics.dead.Add(ctx, int64(n), r.metrics.plain.add...)
	}
}

// pushed records a push of n messages that returned these errors.
func (r *Recorder) pushed(ctx context.Context, start time.Time, n int, errs []error) {
	if !r.measures() {
		return
	}
	defer guard.Log(r.Log, meterProvider)
	var failures map[string]int
	for _, err := range errs {
		if err != nil {
			if failures == nil {
				failures = make(map[string]int)
			}
			failures[r.errorType(err)]++
		}
	}
	m := r.metrics
	for failure, failed := range failures {
		m.sent.Add(ctx, int64(failed), m.of(Push, failure).add...)
		n -= failed
	}
	if n > 0 {
		m.sent.Add(ctx, int64(n), m.operations[Push].add...)
	}
	r.Operation(ctx, Push, start, firstError(errs))
}

// A Delivery is a message that was handed out.
type Delivery struct {
	ID       string
	BodySize int // bytes
	Headers  map[string]string
	Attempt  int
	Lateness time.Duration // from its due time until now
}

// Delivered records messages that Receive returns, or that a handler is given for Process.
func (r *Recorder) Delivered(ctx context.Context, op string, ds ...Delivery) {
	if !r.measures() || len(ds) == 0 {
		return
	}
	defer guard.Log(r.Log, meterProvider)
	m := r.metrics
	m.consumed.Add(ctx, int64(len(ds)), m.operations[op].add...)
	for _, d := range ds {
		attempt := &m.first
		if d.Attempt > 1 {
			attempt = &m.again
			m.redelivered.Add(ctx, 1, m.plain.add...)
		}
		m.lateness.Record(ctx, d.Lateness.Seconds(), attempt.record...)
	}
}

// Failed records n failures that no caller sees.
func (r *Recorder) Failed(ctx context.Context, kind string, n int) {
	if r.measures() {
		defer guard.Log(r.Log, meterProvider)
		r.metrics.failed.Add(ctx, int64(n), r.metrics.failures[kind].add...)
	}
}

// Expired records n messages that expired and were not handed out.
func (r *Recorder) Expired(ctx context.Context, n int) {
	if r.measures() && n > 0 {
		defer guard.Log(r.Log, meterProvider)
		r.metrics.expired.Add(ctx, int64(n), r.metrics.plain.add...)
	}
}

// Trimmed records n dead letters that the retention deleted.
func (r *Recorder) Trimmed(ctx context.Context, n int) {
	if r.measures() && n > 0 {
		defer guard.Log(r.Log, meterProvider)
		r.metrics.trimmed.Add(ctx, int64(n), r.metrics.plain.add...)
	}
}

// AddWorkers counts n workers until remove is called. Counters of rare events start at 0:
// Prometheus sees no increase in a time series whose first value is 1.
func (r *Recorder) AddWorkers(n int) (remove func()) {
	if !r.measures() {
		return func() {}
	}
	ctx := context.Background()
	for _, kind := range FailureKinds {
		r.Failed(ctx, kind, 0)
	}
	add := func(n int) {
		defer guard.Log(r.Log, meterProvider)
		r.metrics.workers.Add(ctx, int64(n), r.metrics.plain.add...)
	}
	add(n)
	return func() { add(-n) }
}
