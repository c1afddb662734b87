package delayq

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/delayq/delayq/internal/consumer"
)

// A meter keeps the figures of a queue. The nil one keeps none.
type meter struct {
	clock clockwork.Clock
	log   *slog.Logger
	*instruments
	runs runs

	identity   []attribute.KeyValue
	plain      series            // without further attributes
	operations map[string]series // that succeeded
	first      series            // of a first attempt
	again      series            // of a later one
	failures   map[string]series
}

// A series is the attributes of a figure, put together once and not for each message.
type series struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newSeries(groups ...[]attribute.KeyValue) series {
	set := metric.WithAttributeSet(attribute.NewSet(slices.Concat(groups...)...))
	return series{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
}

func (q *queue) newMeter(from metric.Meter) (*meter, error) {
	made, err := newInstruments(from)
	if err != nil {
		return nil, err
	}
	identity := q.identity()
	m := &meter{
		clock:       q.clock,
		log:         q.log,
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
	for _, kind := range consumer.FailureKinds() {
		m.failures[kind] = newSeries(identity, []attribute.KeyValue{keyErrorType.String(kind)})
	}
	m.dead.Add(context.Background(), 0, m.plain.add...) // see employ
	m.redelivered.Add(context.Background(), 0, m.plain.add...)
	return m, nil
}

// of returns the series of an operation that failed so; "" for one that did not.
func (m *meter) of(op, failure string) series {
	if failure == "" {
		return m.operations[op]
	}
	return newSeries(m.identity, operation(op), []attribute.KeyValue{keyErrorType.String(failure)})
}

// begin is the time when something begins that ends with one of the methods below.
func (m *meter) begin() (now time.Time) {
	if m != nil {
		now = m.clock.Now()
	}
	return now
}

func (m *meter) since(began time.Time) float64 { return m.clock.Now().Sub(began).Seconds() }

// operated notes a call of the store that a user made.
func (m *meter) operated(ctx context.Context, op string, began time.Time, err error) {
	if m == nil {
		return
	}
	defer m.guard()
	failure := ""
	if err != nil {
		failure = errorType(err)
	}
	m.duration.Record(ctx, m.since(began), m.of(op, failure).record...)
}

// settled notes a call, by the user or the consumer, that settled n messages.
func (m *meter) settled(ctx context.Context, op string, n int, began time.Time, err error) {
	m.operated(ctx, op, began, err)
	if m != nil && op == opDead && n > 0 {
		defer m.guard()
		m.dead.Add(ctx, int64(n), m.plain.add...)
	}
}

// pushed notes a push of n messages, of which errs failed.
func (m *meter) pushed(ctx context.Context, began time.Time, n int, errs []error) {
	if m == nil {
		return
	}
	defer m.guard()
	for failure, failed := range countFailures(errs) {
		m.sent.Add(ctx, int64(failed), m.of(opPush, failure).add...)
		n -= failed
	}
	if n > 0 {
		m.sent.Add(ctx, int64(n), m.operations[opPush].add...)
	}
	m.operated(ctx, opPush, began, firstError(errs...))
}

func countFailures(errs []error) (byType map[string]int) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		if byType == nil {
			byType = make(map[string]int)
		}
		byType[errorType(err)]++
	}
	return byType
}

// handedOut notes messages that come into a user's hands.
func (m *meter) handedOut(ctx context.Context, op string, ds ...*Delivery) {
	if m == nil || len(ds) == 0 {
		return
	}
	defer m.guard()
	now := m.clock.Now()
	m.consumed.Add(ctx, int64(len(ds)), m.operations[op].add...)
	for _, d := range ds {
		which := &m.first
		if d.Attempt > 1 {
			which = &m.again
			m.redelivered.Add(ctx, 1, m.plain.add...)
		}
		m.lateness.Record(ctx, d.lease.Late(d.Due, now).Seconds(), which.record...)
	}
}

// handling notes that a handler begins.
func (m *meter) handling(ctx context.Context, d *Delivery, began time.Time) (run uint64) {
	m.handedOut(ctx, opProcess, d)
	if m == nil {
		return 0
	}
	run = m.runs.begin(began)
	defer m.guard()
	m.running.Add(ctx, 1, m.plain.add...)
	return run
}

// handled notes that a handler has returned, having failed so.
func (m *meter) handled(ctx context.Context, run uint64, began time.Time, failure string) {
	if m == nil {
		return
	}
	m.runs.end(run)
	defer m.guard()
	m.running.Add(ctx, -1, m.plain.add...)
	m.processed.Record(ctx, m.since(began), m.of(opProcess, failure).record...)
	if failure != "" && failure != consumer.FailedLeaseLost { // which was noted when it was lost
		m.failure(ctx, failure, 1)
	}
}

// failure notes what no caller hears.
func (m *meter) failure(ctx context.Context, kind string, n int) {
	if m != nil {
		defer m.guard()
		m.failed.Add(ctx, int64(n), m.failures[kind].add...)
	}
}

// employ notes workers for as long as their Consume runs. What counts rare events starts at 0: Prometheus sees no increase in
// a time series that begins with 1.
func (m *meter) employ(n int) (dismiss func()) {
	if m == nil {
		return func() {}
	}
	for _, kind := range consumer.FailureKinds() {
		m.failure(context.Background(), kind, 0)
	}
	m.employed(n)
	return func() { m.employed(-n) }
}

func (m *meter) employed(n int) {
	defer m.guard()
	m.workers.Add(context.Background(), int64(n), m.plain.add...)
}

// guard ends a panic of the user's meter provider.
func (m *meter) guard() {
	if v := recover(); v != nil {
		logPanic(m.log, "meter provider", v)
	}
}
