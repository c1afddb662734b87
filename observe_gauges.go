package delayq

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/delayq/delayq/backend"
)

// statsWithin bounds what a collection of metrics waits for the store.
const statsWithin = 5 * time.Second

// A gauger counts the messages of a queue whenever metrics are collected.
type gauger struct {
	q      *queue
	depth  metric.Int64ObservableGauge
	age    metric.Float64ObservableGauge
	plain  metric.MeasurementOption
	states map[string]metric.MeasurementOption
}

func (q *queue) watchDepth(m metric.Meter) (metric.Registration, error) {
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
	identity := q.identity()
	g := &gauger{q: q, depth: depth, age: age, plain: metric.WithAttributes(identity...), states: make(map[string]metric.MeasurementOption)}
	for _, state := range []string{"scheduled", "ready", "in_flight", "dead", "quarantined"} {
		g.states[state] = metric.WithAttributeSet(attribute.NewSet(append(identity, keyState.String(state))...))
	}
	return m.RegisterCallback(g.observe, depth, age)
}

// observe asks the store once for both gauges. Close does not wait for a store that hangs.
func (g *gauger) observe(ctx context.Context, o metric.Observer) error {
	ctx, cancel := context.WithTimeout(ctx, statsWithin)
	defer cancel()
	defer context.AfterFunc(g.q.stopping, cancel)()
	s, err := g.q.store.Stats(ctx)
	switch {
	case g.q.stopping.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("delayq: counting the messages of queue %q: %w", g.q.name, err)
	}
	g.tell(o, s)
	return nil
}

func (g *gauger) tell(o metric.Observer, s backend.Stats) {
	for state, n := range map[string]int64{
		"scheduled": s.Scheduled, "ready": s.Ready, "in_flight": s.InFlight, "dead": s.Dead, "quarantined": s.Quarantined,
	} {
		o.ObserveInt64(g.depth, n, g.states[state])
	}
	o.ObserveFloat64(g.age, g.ageOf(s.HeadDue).Seconds(), g.plain)
}

func (g *gauger) ageOf(due time.Time) time.Duration {
	if due.IsZero() {
		return 0
	}
	return max(g.q.clock.Now().Sub(due), 0)
}
