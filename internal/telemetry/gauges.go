package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// statsTimeout bounds how long a collection of metrics waits for the store.
const statsTimeout = 5 * time.Second

// watchDepth registers the gauges of the queue's depth. A collection asks the store once for both.
func (r *Recorder) watchDepth(m metric.Meter) (metric.Registration, error) {
	depth, err := m.Int64ObservableGauge("delayq.messages", metric.WithUnit(unitMessage),
		metric.WithDescription("Messages in the queue by state, those that other processes hold included."))
	if err != nil {
		return nil, err
	}
	age, err := m.Float64ObservableGauge("delayq.oldest_due.age", metric.WithUnit("s"),
		metric.WithDescription("How long ago the message was due that has waited longest for a worker; 0 without any."))
	if err != nil {
		return nil, err
	}
	plain := metric.WithAttributes(r.identity...)
	states := make(map[string]metric.MeasurementOption)
	for _, state := range []string{"scheduled", "ready", "in_flight", "dead", "quarantined"} {
		states[state] = metric.WithAttributeSet(attribute.NewSet(append(r.identity, keyState.String(state))...))
	}
	return m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, statsTimeout)
		defer cancel()
		defer context.AfterFunc(r.closing, cancel)() // Unregister waits for this function
		s, err := r.Stats(ctx)
		switch {
		case r.closing.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("delayq: counting the messages of queue %q: %w", r.Queue, err)
		}
		for state, n := range map[string]int64{
			"scheduled": s.Scheduled, "ready": s.Ready, "in_flight": s.InFlight, "dead": s.Dead, "quarantined": s.Quarantined,
		} {
			o.ObserveInt64(depth, n, states[state])
		}
		waited := time.Duration(0)
		if !s.HeadDue.IsZero() {
			waited = max(r.Clock.Now().Sub(s.HeadDue), 0)
		}
		o.ObserveFloat64(age, waited.Seconds(), plain)
		return nil
	}, depth, age)
}
