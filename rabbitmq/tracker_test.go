package rabbitmq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// A tracker compares the messages that were pushed with the messages that come.
type tracker struct {
	t *testing.T
	q backend.Queue

	handling time.Duration // longest time between a receive and its ack
	cut      bool          // the test cuts connections, so that Receive may fail

	mu          sync.Mutex
	due         map[string]time.Time // of every push, also with an unknown outcome
	confirmed   map[string]bool
	came        map[string]int
	acked       map[string]bool
	failedAcks  int
	again       map[string]int // repeated messages, by reason
	resurrected []int          // attempts of messages that came after a successful ack
	latest      time.Duration  // after the due time
}

func newTracker(t *testing.T, q backend.Queue) *tracker {
	return &tracker{
		t: t, q: q, due: make(map[string]time.Time), confirmed: make(map[string]bool), came: make(map[string]int),
		acked: make(map[string]bool), again: make(map[string]int),
	}
}

// push pushes n messages with random delays.
func (r *tracker) push(ctx context.Context, n int, longest time.Duration) {
	const size = 250
	for first := 0; first < n; first += size {
		ms := make([]backend.Message, min(size, n-first))
		for i := range ms {
			ms[i] = message(fmt.Sprint("m", first+i), rand.N(longest))[0]
		}
		r.schedule(ctx, ms)
	}
}

// schedule pushes messages, and remembers which ones the broker has confirmed.
func (r *tracker) schedule(ctx context.Context, ms []backend.Message) {
	r.mu.Lock()
	for _, m := range ms {
		r.due[m.ID] = time.Now().Add(m.Delay)
	}
	r.mu.Unlock()
	errs := r.q.Schedule(ctx, ms)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range ms {
		if errs == nil || errs[i] == nil {
			r.confirmed[m.ID] = true
		}
	}
}

// take takes and acknowledges until the context ends, or Receive fails where nothing is cut.
func (r *tracker) take(ctx context.Context, limit int) {
	for ctx.Err() == nil {
		ds, err := r.q.Receive(ctx, limit, time.Minute)
		if err != nil && r.cut {
			continue
		}
		if err != nil {
			return
		}
		r.note(ds, time.Now())
		if r.handling > 0 {
			time.Sleep(rand.N(r.handling))
		}
		errs := r.q.Ack(ctx, leases(ds))
		r.mu.Lock()
		for i, d := range ds {
			if errs == nil || errs[i] == nil {
				r.acked[d.ID] = true
			} else {
				r.failedAcks++
			}
		}
		r.mu.Unlock()
	}
}

func (r *tracker) note(ds []backend.Delivery, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range ds {
		due, ok := r.due[d.ID]
		if late := judge.Late(due, now); !ok || late < 0 || now.Before(d.Due) || string(d.Body) != "body of "+d.ID {
			r.t.Errorf("%v: got %+v, due at %v", now, d, due)
		}
		r.latest = max(r.latest, now.Sub(due))
		if r.acked[d.ID] {
			r.resurrected = append(r.resurrected, d.Attempt)
		}
		if r.came[d.ID]++; r.came[d.ID] > 1 {
			r.again[r.reason(d)]++
		}
	}
}

// reason returns why a message came again.
func (r *tracker) reason(d backend.Delivery) string {
	switch {
	case d.Attempt == 1:
		return "it was passed on twice, or its ack was lost with the count"
	case r.acked[d.ID]:
		return "the broker read the ack and lost it"
	default:
		return "it was held, or its ack was in progress"
	}
}

// awaited returns the confirmed messages that have not come, with the time since they were due.
func (r *tracker) awaited() map[string]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make(map[string]time.Duration)
	for id := range r.confirmed {
		if r.came[id] == 0 {
			ids[id] = time.Since(r.due[id])
		}
	}
	return ids
}

func (r *tracker) missing() int { return len(r.awaited()) }

func (r *tracker) arrived() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.came)
}
