package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/delayq/delayq/backend"
)

// statsTimeout bounds how long a collection of metrics waits for the store.
const statsTimeout = 5 * time.Second

// depth has the gauges of a queue's depth and pause, and the attributes of what they show.
type depth struct {
	messages, due, paused metric.Int64ObservableGauge
	oldest                metric.Float64ObservableGauge
	queue                 metric.MeasurementOption
	states                map[string]metric.MeasurementOption
	intervals             [len(backend.DueHistogram{})]metric.MeasurementOption
}

// newDepth makes the gauges of a queue with these attributes.
func newDepth(m metric.Meter, identity []attribute.KeyValue) (d depth, err error) {
	var errs [4]error
	d.messages, errs[0] = m.Int64ObservableGauge("delayq.messages", metric.WithUnit(unitMessage),
		metric.WithDescription("Messages in the queue by state, those that other processes hold included."))
	d.oldest, errs[1] = m.Float64ObservableGauge("delayq.oldest_due.age", metric.WithUnit("s"),
		metric.WithDescription("How long ago the message was due that has waited longest for a worker; 0 without any."))
	d.due, errs[2] = m.Int64ObservableGauge("delayq.messages.due", metric.WithUnit(unitMessage),
		metric.WithDescription("Scheduled messages by how soon they are due, each in one interval."))
	d.paused, errs[3] = m.Int64ObservableGauge("delayq.paused", metric.WithUnit("{queue}"),
		metric.WithDescription("1 while PauseAll holds the queue's messages back, else 0."))
	with := func(more attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(slices.Clone(identity), more)...))
	}
	d.queue = metric.WithAttributes(identity...)
	d.states = make(map[string]metric.MeasurementOption)
	for _, state := range []string{"scheduled", "ready", "in_flight", "dead", "quarantined"} {
		d.states[state] = with(keyState.String(state))
	}
	for i, within := range backend.DueLabels() {
		d.intervals[i] = with(keyDueWithin.String(within))
	}
	return d, cmp.Or(errs[:]...)
}

// show has the gauges show what the store counts. What it does not know they leave out.
func (d *depth) show(o metric.Observer, s backend.Stats) {
	for state, n := range map[string]int64{
		"scheduled": s.Scheduled, "ready": s.Ready, "in_flight": s.InFlight, "dead": s.Dead, "quarantined": s.Quarantined,
	} {
		if n != backend.Unknown {
			o.ObserveInt64(d.messages, n, d.states[state])
		}
	}
	for i, n := range s.Due {
		if n != backend.Unknown {
			o.ObserveInt64(d.due, n, d.intervals[i])
		}
	}
	if s.OldestReady != backend.Unknown {
		o.ObserveFloat64(d.oldest, s.OldestReady.Seconds(), d.queue)
	}
	paused := int64(0)
	if s.Paused {
		paused = 1
	}
	o.ObserveInt64(d.paused, paused, d.queue)
}

// watchDepth registers the gauges of the queue's depth and pause. A collection asks the store once
// for all.
func (r *Recorder) watchDepth(m metric.Meter) (metric.Registration, error) {
	d, err := newDepth(m, r.identity)
	if err != nil {
		return nil, err
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
		d.show(o, s)
		return nil
	}, d.messages, d.oldest, d.due, d.paused)
}
