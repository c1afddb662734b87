package delayq_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/messagingconv"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

func TestMetricsOfPushes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		s := newSeam()
		q := newQueue(t, s.option(), w.metrics())
		push(t, q, delayq.ID("a"))
		_, err := q.Push(t.Context(), nil, delayq.ID("a"))
		wantIs(t, err, delayq.ErrDuplicate)
		_, err = q.PushBatch(t.Context(), []delayq.Message{{ID: "b"}, {ID: "a"}, {ID: "c"}, {ID: "b"}})
		wantIs(t, err, delayq.ErrDuplicate)
		_, err = q.Push(t.Context(), nil, delayq.After(-1))
		wantIs(t, err, delayq.ErrInvalid) // and is not counted
		s.before = func(context.Context, string) error {
			time.Sleep(3 * time.Second)
			return errStore
		}
		_, err = q.Push(t.Context(), nil)
		wantIs(t, err, errStore)
		s.before = nil

		const sent = "messaging.client.sent.messages"
		w.wantTotal(t, 3+3+1, sent, operation("push"), attribute.String("messaging.operation.type", "send"))
		w.wantTotal(t, 3, sent, errorType("duplicate"))
		w.wantTotal(t, 1, sent, errorType("_OTHER"))
		const duration = "messaging.client.operation.duration"
		w.wantTotal(t, 4, duration, operation("push"))
		if p := w.total(t, duration, errorType("_OTHER")); p.value != 1 || p.sum != 3 {
			t.Errorf("the failed push is %+v, want one of 3 s", p)
		}
	})
}

func TestMetricsOfDeliveries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		q := newQueue(t, w.metrics())
		push(t, q, delayq.After(time.Second))
		time.Sleep(time.Second + 250*time.Millisecond)
		d := receive(t, q)
		must(t, d.Extend(t.Context(), time.Minute))
		must(t, d.Nack(t.Context(), time.Minute))
		time.Sleep(time.Minute + 2*time.Second)
		must(t, receive(t, q).DeadLetter(t.Context(), "a reason"))
		wantIs(t, d.Ack(t.Context()), delayq.ErrSettled)
		push(t, q)
		push(t, q)
		ds, err := q.ReceiveBatch(t.Context(), 10)
		must(t, err)
		must(t, q.AckBatch(t.Context(), ds))
		wantIs(t, q.Cancel(t.Context(), "none"), delayq.ErrNotFound)
		wantIs(t, q.Reschedule(t.Context(), "none", time.Now()), delayq.ErrNotFound)

		w.wantTotal(t, 4, "messaging.client.consumed.messages", operation("receive"))
		w.wantTotal(t, 1, "delayq.redeliveries")
		w.wantTotal(t, 1, "delayq.dead_letters")
		again := attribute.Bool("delayq.redelivered", true)
		if p := w.total(t, "delayq.lateness", again); p.value != 1 || p.sum != 2 {
			t.Errorf("the redelivery's lateness is %+v, want one of 2 s", p)
		}
		if p := w.total(t, "delayq.lateness"); p.value != 4 || p.sum != 2.25 {
			t.Errorf("lateness is %+v, want 4 of 2.25 s together", p)
		}
		const duration = "messaging.client.operation.duration"
		for op, n := range map[string]float64{"nack": 1, "dead": 1, "extend": 1, "ack": 2, "cancel": 1, "reschedule": 1} {
			w.wantTotal(t, n, duration, operation(op))
		}
		w.wantTotal(t, 1, duration, operation("ack"), errorType("settled"))
		w.wantTotal(t, 2, duration, errorType("not_found"))
		w.wantTotal(t, 0, "delayq.failures")
	})
}

// Neither a clock that is wrong nor a lease that was renewed shows in the lateness, but the wait
// for a worker does.
func TestLatenessIsByTheStoresClock(t *testing.T) {
	each(t, []time.Duration{-time.Hour, 0, time.Hour}, func(t *testing.T, ahead time.Duration) {
		w, s := newWatcher(), newSeam()
		s.received = func(ds []backend.Delivery) {
			for i := range ds {
				ds[i].Due, ds[i].Until = ds[i].Due.Add(ahead), ds[i].Until.Add(ahead)
			}
		}
		q := newQueue(t, s.option(), w.metrics())
		push(t, q, delayq.After(time.Minute))
		time.Sleep(time.Minute + 500*time.Millisecond)
		consume(t, q, 2*time.Hour, func(context.Context, *delayq.Delivery) error {
			time.Sleep(time.Hour)
			return nil
		})
		if p := w.total(t, "delayq.lateness"); p.value != 1 || p.sum != 0.5 {
			t.Errorf("lateness is %+v, want one of 0.5 s", p)
		}
	})
}

// everything makes each metric move, with each of its attributes.
func everything(t *testing.T, w *watcher) {
	t.Helper()
	q := newQueue(t, w.metrics())
	push(t, q, delayq.ID("a"))
	_, err := q.Push(t.Context(), nil, delayq.ID("a"))
	wantIs(t, err, delayq.ErrDuplicate)
	must(t, receive(t, q).Nack(t.Context(), 0))
	push(t, q, delayq.ExpiresAfter(time.Millisecond))
	time.Sleep(time.Second)
	consume(t, q, time.Hour, obeying, delayq.Timeout(time.Second), delayq.MaxAttempts(3), every(time.Minute))
}

// A row is a metric's description in the table, or the SDK's.
type row struct {
	kind, unit string
	attributes []string // besides the common ones
}

func (r row) String() string { return fmt.Sprintf("%s of %s with %q", r.kind, r.unit, r.attributes) }

func measured(t *testing.T, m metricdata.Metrics) row {
	t.Helper()
	r := row{unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		r.kind = "up-down counter"
		if data.IsMonotonic {
			r.kind = "counter"
		}
	case metricdata.Histogram[float64]:
		r.kind = "histogram"
	case metricdata.Gauge[int64], metricdata.Gauge[float64]:
		r.kind = "gauge"
	}
	ps := pointsOf(t, m)
	for _, p := range ps {
		r.attributes = append(r.attributes, keys(t, p.attributes)...)
	}
	if len(ps) == 0 {
		t.Errorf("%s has no value", m.Name)
	}
	slices.Sort(r.attributes)
	r.attributes = slices.Compact(r.attributes)
	return r
}

// keys returns the keys of the attributes without those that all metrics have.
func keys(t *testing.T, set attribute.Set) (names []string) {
	t.Helper()
	common := 0
	for _, kv := range set.ToSlice() {
		switch kv.Key {
		case "messaging.system", "messaging.destination.name", "delayq.backend":
			common++
		default:
			names = append(names, string(kv.Key))
		}
	}
	if common != 3 {
		t.Errorf("attributes %v lack some of those of all metrics", set.ToSlice())
	}
	return names
}

var tableRow = regexp.MustCompile("(?m)^\\| `([a-z._]+)` \\| ([a-z-]+(?: counter)?) \\| `([a-z{}]+)` \\|([^|]*)\\|")

// tabled returns the table of metrics in docs/observability.md.
func tabled(t *testing.T) map[string]row {
	t.Helper()
	rows := make(map[string]row)
	for _, cells := range tableRow.FindAllStringSubmatch(observability(t), -1) {
		r := row{kind: cells[2], unit: cells[3]}
		r.attributes = strings.FieldsFunc(cells[4], func(c rune) bool { return strings.ContainsRune("`, ", c) })
		slices.Sort(r.attributes)
		rows[cells[1]] = r
	}
	return rows
}

// The table of metrics and the code agree, in both directions.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	table := tabled(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher()
		everything(t, w)
		got := w.collect(t)
		for _, name := range w.made {
			if _, ok := table[name]; !ok {
				t.Errorf("%s is not in docs/observability.md", name)
			}
		}
		for name, want := range table {
			m, ok := got[name]
			if !ok {
				t.Errorf("%s is in docs/observability.md and has not moved", name)
				continue
			}
			if r := measured(t, m); r.String() != want.String() {
				t.Errorf("%s is a %v, in docs/observability.md a %v", name, r, want)
			}
		}
	})
}

// Names of the semantic conventions have the conventions' unit and description.
func TestMetricsFollowTheConventions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		everything(t, w)
		got := w.collect(t)
		for _, want := range []interface {
			Name() string
			Unit() string
			Description() string
		}{
			messagingconv.ClientSentMessages{}, messagingconv.ClientConsumedMessages{},
			messagingconv.ClientOperationDuration{}, messagingconv.ProcessDuration{},
		} {
			if m := got[want.Name()]; m.Unit != want.Unit() || m.Description != want.Description() {
				t.Errorf("%s is %q in %q, want %q in %q", want.Name(), m.Description, m.Unit, want.Description(), want.Unit())
			}
		}
		var rm metricdata.ResourceMetrics
		must(t, w.reader.Collect(t.Context(), &rm))
		if scope := rm.ScopeMetrics[0].Scope; scope.SchemaURL != semconv.SchemaURL || scope.Name != "github.com/delayq/delayq" {
			t.Errorf("scope %+v, want the schema %s", scope, semconv.SchemaURL)
		}
		push := pointsOf(t, got["messaging.client.sent.messages"])[0].attributes
		for _, key := range []attribute.Key{
			semconv.MessagingSystemKey, semconv.MessagingDestinationNameKey, semconv.MessagingOperationNameKey, semconv.MessagingOperationTypeKey,
		} {
			if !push.HasValue(key) {
				t.Errorf("%v lacks %s", push.ToSlice(), key)
			}
		}
	})
}

// No identity of a message is in a metric, however many there are.
func TestMetricsHaveFewSeries(t *testing.T) {
	t.Parallel()
	w := newWatcher()
	q := newQueue(t, w.metrics())
	for i := range 100 {
		push(t, q, delayq.ID(fmt.Sprint("order-", i)))
		must(t, receive(t, q).Ack(t.Context()))
	}
	for name, m := range w.collect(t) {
		if n := len(pointsOf(t, m)); n > 7 {
			t.Errorf("%s has %d time series", name, n)
		}
	}
}
