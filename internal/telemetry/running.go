package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// running are the handlers that run, with their start times.
type running struct {
	mu     sync.Mutex
	last   uint64
	starts map[uint64]time.Time
}

func (r *running) start(now time.Time) (run uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.starts == nil {
		r.starts = make(map[uint64]time.Time)
	}
	r.last++
	r.starts[r.last] = now
	return r.last
}

func (r *running) end(run uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.starts, run)
}

// longest returns how long the handler has run that started first; 0 without any.
func (r *running) longest(now time.Time) (d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, start := range r.starts {
		d = max(d, now.Sub(start))
	}
	return d
}

// watchLongest registers the gauge that tells one handler that hangs from many busy ones.
func (r *Recorder) watchLongest(m metric.Meter) (metric.Registration, error) {
	longest, err := m.Float64ObservableGauge("delayq.handlers.longest", metric.WithUnit("s"),
		metric.WithDescription("How long the handler has run that began first of those that run; 0 without any."))
	if err != nil {
		return nil, err
	}
	plain := metric.WithAttributes(r.identity...)
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveFloat64(longest, r.metrics.running.longest(r.Clock.Now()).Seconds(), plain)
		return nil
	}, longest)
}
