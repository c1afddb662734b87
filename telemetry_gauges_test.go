package delayq_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

func TestDepth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics())
		const depth, age = "delayq.messages", "delayq.oldest_due.age"
		w.wantTotal(t, 0, age)
		pushDead(t, q, "dead", "a reason")
		for range 2 {
			push(t, q)
			receive(t, q)
		}
		pushMany(t, q, 3)
		pushMany(t, q, 4, delayq.After(time.Hour))
		time.Sleep(10 * time.Second)
		for name, n := range map[string]float64{"dead": 1, "in_flight": 2, "ready": 3, "scheduled": 4, "quarantined": 0} {
			w.wantTotal(t, n, depth, state(name))
		}
		w.wantTotal(t, 10, age)
		for label, n := range map[string]float64{"1m": 0, "1h": 4, "later": 0} {
			w.wantTotal(t, n, "delayq.messages.due", attribute.String("delayq.due_within", label))
		}
	})
}

// An age is none while nothing is due.
func TestAgeOfWhatIsNotDue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics())
		push(t, q, delayq.After(time.Hour))
		w.wantTotal(t, 0, "delayq.oldest_due.age")
	})
}

func TestPauseGauge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics())
		w.wantTotal(t, 0, "delayq.paused")
		must(t, q.PauseAll(t.Context(), delayq.PauseFor(time.Hour)))
		w.wantTotal(t, 1, "delayq.paused")
		time.Sleep(time.Hour)
		w.wantTotal(t, 0, "delayq.paused")
	})
}

func TestDepthAsksOnce(t *testing.T) {
	t.Parallel()
	s := newSeam()
	w := newWatcher()
	q, err := delayq.New(t.Context(), "orders", s.option(), w.metrics())
	must(t, err)
	for range 3 {
		w.collect(t)
	}
	must(t, q.Close())
	if _, there := w.collect(t)["delayq.messages"]; there {
		t.Error("a closed queue still has a depth")
	}
	if n, _ := s.calls("stats"); n != 3 {
		t.Errorf("%d calls of Stats for 3 collections, want 3", n)
	}
}

func TestDepthOfAStoreThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := newWatcher(), newSeam()
		s.before = hanging("stats")
		newQueue(t, s.option(), w.metrics())
		began := time.Now()
		err := w.reader.Collect(t.Context(), &metricdata.ResourceMetrics{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("the collection ended after %v with %v, want 5 s and what failed", time.Since(began), err)
		}
	})
}

// Close ends a collection that is under way.
func TestCloseEndsACollection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := newWatcher(), newSeam()
		s.before = hanging("stats")
		q := newQueue(t, s.option(), w.metrics())
		collected := make(chan error, 1)
		go func() { collected <- w.reader.Collect(context.Background(), &metricdata.ResourceMetrics{}) }()
		synctest.Wait()
		began := time.Now()
		must(t, q.Close())
		must(t, <-collected)
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestDepthWithoutStats(t *testing.T) {
	t.Parallel()
	w, s := newWatcher(), newSeam()
	s.traits = lacking(backend.Counting)
	q := newQueue(t, s.option(), w.metrics())
	push(t, q)
	got := w.collect(t)
	if _, there := got["delayq.messages"]; there {
		t.Error("a backend that cannot count has a depth")
	}
	w.wantTotal(t, 1, "messaging.client.sent.messages")
}
