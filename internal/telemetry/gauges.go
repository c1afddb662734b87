package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/delayq/delayq/backend"
)

// statsTimeout bounds how long a collection of metrics waits for the store.
const statsTimeout = 5 * time.Second

// watchDepth registers the gauges of the queue's depth and pause. A collection asks the store once
// for all.
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
	due, err := m.Int64ObservableGauge("delayq.messages.due", metric.WithUnit(unitMessage),
		metric.WithDescription("Scheduled messages by how soon they are due, each in one interval."))
	if err != nil {
		return nil, err
	}
	pause, err := m.Int64ObservableGauge("delayq.paused", metric.WithUnit("{queue}"),
		metric.WithDescription("1 while PauseAll holds the queue's messages back, else 0."))
	if err != nil {
		return nil, err
	}
	plain := metric.WithAttributes(r.identity...)
	states := make(map[string]metric.MeasurementOption)
	for _, state := range []string{"scheduled", "ready", "in_flight", "dead", "quarantined"} {
		states[state] = metric.WithAttributeSet(attribute.NewSet(append(r.identity, keyState.String(state))...))
	}
	var intervals [len(backend.DueHistogram{})]metric.MeasurementOption
	for i, within := range backend.DueLabels() {
		intervals[i] = metric.WithAttributeSet(attribute.NewSet(append(r.identity, keyDueWithin.String(within))...))
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
			if n != backend.Unknown {
				o.ObserveInt64(depth, n, states[state])
			}
		}
		for i, n := range s.Due {
			if n != backend.Unknown {
				o.ObserveInt64(due, n, intervals[i])
			}
		}
		if s.OldestReady != backend.Unknown {
			o.ObserveFloat64(age, s.OldestReady.Seconds(), plain)
		}
		paused := int64(0)
		if s.Paused {
			paused = 1
		}
		o.ObserveInt64(pause, paused, plain)
		return nil
	}, depth, due, age, pause)
}
