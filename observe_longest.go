package delayq

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// runs are the handlers that run, by when they began.
type runs struct {
	mu    sync.Mutex
	last  uint64
	began map[uint64]time.Time
}

func (r *runs) begin(now time.Time) (run uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began == nil {
		r.began = make(map[uint64]time.Time)
	}
	r.last++
	r.began[r.last] = now
	return r.last
}

func (r *runs) end(run uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.began, run)
}

// longest is how long the one has run that began first; 0 without any.
func (r *runs) longest(now time.Time) (d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, began := range r.began {
		d = max(d, now.Sub(began))
	}
	return d
}

// watchLongest tells a handler that hangs from many that have much to do.
func (q *queue) watchLongest(m metric.Meter) (metric.Registration, error) {
	longest, err := m.Float64ObservableGauge("delayq.handlers.longest", metric.WithUnit("s"),
		metric.WithDescription("How long the handler has run that began first of those that run; 0 without any."))
	if err != nil {
		return nil, err
	}
	plain := metric.WithAttributes(q.identity()...)
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveFloat64(longest, q.meter.runs.longest(q.clock.Now()).Seconds(), plain)
		return nil
	}, longest)
}
