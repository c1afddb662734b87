package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// badError is an error one of whose methods does harm.
type badError struct {
	onError, onIs, onAs, onUnwrap func()
}

func do(f func()) {
	if f != nil {
		f()
	}
}

func (e *badError) Error() string   { do(e.onError); return "a bad error" }
func (e *badError) Is(error) bool   { do(e.onIs); return false }
func (e *badError) As(any) bool     { do(e.onAs); return false }
func (e *badError) Unwrap() []error { do(e.onUnwrap); return []error{nil} }

func oops() { panic("oops") }

// panicsWithItself cannot be printed, nor can its panic.
type panicsWithItself struct{}

func (e panicsWithItself) Error() string { panic(e) }

// badErrors are values that a handler may return, or panic with.
var badErrors = map[string]error{
	"nil pointer":              (*badError)(nil),
	"nil pointer, wrapped":     fmt.Errorf("%w", error((*badError)(nil))),
	"nil pointer, joined":      errors.Join(errHandler, (*badError)(nil)),
	"nil RetryAfterError":      (*delayq.RetryAfterError)(nil),
	"RetryAfter of nil":        delayq.RetryAfter((*badError)(nil), time.Second),
	"Error panics with itself": panicsWithItself{},
	"nil PanicError":           (*delayq.PanicError)(nil),
	"nil OpError":              (*delayq.OpError)(nil),
	"OpError of nothing":       &delayq.OpError{},
	"nil BatchError":           (*delayq.BatchError)(nil),
	"BatchError of nothing":    &delayq.BatchError{},
	"Error panics":             &badError{onError: oops},
	"Is panics":                &badError{onIs: oops},
	"As panics":                &badError{onAs: oops},
	"Unwrap panics":            &badError{onUnwrap: oops},
	"Error ends goroutine":     &badError{onError: runtime.Goexit},
	"Is ends goroutine":        &badError{onIs: runtime.Goexit},
	"ErrDrop beside a bad Is":  fmt.Errorf("%w %w", &badError{onIs: oops}, errHandler),
}

// decisions are errors that are no plain failure when a handler returns them.
var decisions = map[string]error{
	"ErrDrop":       fmt.Errorf("no such order: %w", delayq.ErrDrop),
	"ErrDeadLetter": fmt.Errorf("no such order: %w", delayq.ErrDeadLetter),
	"RetryAfter":    delayq.RetryAfter(errHandler, 48*time.Hour),
}

// An error is a failure, whatever its methods do, and so is a panic, whatever its value: the message
// is tried again and becomes a dead letter, and its worker goes on.
func TestBadErrorsAreFailures(t *testing.T) {
	ways := map[string]func() error{"Goexit": func() error { runtime.Goexit(); return nil }}
	for name, bad := range badErrors {
		ways[name+" returned"] = func() error { return bad }
		ways[name+" panicked with"] = func() error { panic(bad) }
	}
	for name, value := range decisions {
		ways[name+" panicked with"] = func() error { panic(value) }
	}
	queuetest.Cases(t, ways, func(t *testing.T, fail func() error) {
		w := newWatcher()
		wantSurvival(t, newQueue(t, w.metrics(), w.traces()), fail)
	})
}

// wantSurvival handles a message that goes wrong in both its attempts, and one that does not, with
// one worker.
func wantSurvival(t *testing.T, q delayq.Queue, fail func() error, opts ...delayq.ConsumeOption) {
	t.Helper()
	push(t, q, delayq.ID("bad"))
	push(t, q, delayq.ID("good"))
	attempts, good := 0, 0
	consume(t, q, time.Hour, func(_ context.Context, d *delayq.Delivery) error {
		if d.ID == "good" {
			good++
			return nil
		}
		attempts++
		return fail()
	}, append([]delayq.ConsumeOption{delayq.MaxAttempts(2)}, opts...)...)
	if attempts != 2 || good != 1 {
		t.Errorf("%d attempts of the bad message, want 2; the good one was handled %d times", attempts, good)
	}
	wantCounts(t, q, delayq.Stats{Dead: 1})
}

// TestHandlerChangesItsDelivery counts attempts as the store does, whatever a handler writes into
// its Delivery.
func TestHandlerChangesItsDelivery(t *testing.T) {
	each(t, []int{-1, 0, 1 << 62}, func(t *testing.T, attempt int) {
		q := newQueue(t)
		push(t, q, delayq.ID("a"))
		seen := 0
		consume(t, q, time.Hour, func(_ context.Context, d *delayq.Delivery) error {
			seen++
			d.Attempt = attempt
			return errHandler
		}, delayq.MaxAttempts(3))
		letters, _, err := q.Dead().List(t.Context(), "", 10)
		must(t, err)
		if len(letters) != 1 || letters[0].Attempts != 3 || letters[0].Reason != errHandler.Error() || seen != 3 {
			t.Errorf("handled %d times, then %+v; want 3 attempts and the handler's error", seen, letters)
		}
	})
}

func TestBadPolicies(t *testing.T) {
	queuetest.Cases(t, map[string]delayq.RetryPolicy{
		"panics":         policy(func(int, error) time.Duration { panic("oops") }),
		"ends goroutine": policy(func(int, error) time.Duration { runtime.Goexit(); return 0 }),
		"nil function":   policy(nil),
		"nil pointer":    (*policy)(nil),
		"least":          policy(func(int, error) time.Duration { return -1 << 63 }),
	}, func(t *testing.T, bad delayq.RetryPolicy) {
		wantSurvival(t, newQueue(t), func() error { return errHandler }, delayq.Retry(bad))
	})
}

// badLog is a slog.Handler whose methods panic as told.
type badLog struct{ enabled, handle, with bool }

func (h badLog) Enabled(context.Context, slog.Level) bool {
	if h.enabled {
		panic("oops")
	}
	return true
}

func (h badLog) Handle(context.Context, slog.Record) error {
	if h.handle {
		panic("oops")
	}
	return nil
}

func (h badLog) WithAttrs([]slog.Attr) slog.Handler {
	if h.with {
		panic("oops")
	}
	return h
}

func (h badLog) WithGroup(string) slog.Handler { return nil }

func TestBadLoggers(t *testing.T) {
	queuetest.Cases(t, map[string]slog.Handler{
		"Enabled panics":   badLog{enabled: true},
		"Handle panics":    badLog{handle: true},
		"WithAttrs panics": badLog{handle: true, with: true},
	}, func(t *testing.T, bad slog.Handler) {
		q := newQueue(t, delayq.WithLogger(slog.New(bad)))
		wantSurvival(t, q, func() error { panic("oops") })
	})
}

// badClock is a clock that panics at every third call, once it is armed.
type badClock struct {
	clockwork.Clock
	armed *atomic.Bool
	calls *atomic.Int64
}

func (c badClock) oops() {
	if c.armed.Load() && c.calls.Add(1)%3 == 0 {
		panic("oops")
	}
}

func (c badClock) Now() time.Time                             { c.oops(); return c.Clock.Now() }
func (c badClock) Since(t time.Time) time.Duration            { c.oops(); return c.Clock.Since(t) }
func (c badClock) Until(t time.Time) time.Duration            { c.oops(); return c.Clock.Until(t) }
func (c badClock) NewTimer(d time.Duration) clockwork.Timer   { c.oops(); return c.Clock.NewTimer(d) }
func (c badClock) NewTicker(d time.Duration) clockwork.Ticker { c.oops(); return c.Clock.NewTicker(d) }
func (c badClock) After(d time.Duration) <-chan time.Time     { c.oops(); return c.Clock.After(d) }
func (c badClock) Sleep(d time.Duration)                      { c.oops(); c.Clock.Sleep(d) }
func (c badClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.oops()
	return c.Clock.AfterFunc(d, f)
}

func TestBadClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWatcher()
		clock := badClock{Clock: clockwork.NewRealClock(), armed: new(atomic.Bool), calls: new(atomic.Int64)}
		q := newQueue(t, delayq.WithClock(clock), w.metrics(), w.traces())
		clock.armed.Store(true)
		wantSurvival(t, q, func() error { return errHandler }, delayq.Timeout(time.Minute))
		if clock.calls.Load() < 30 {
			t.Errorf("the clock was asked %d times", clock.calls.Load())
		}
	})
}

// badMeters is a provider whose meters do harm.
type badMeters struct {
	metricnoop.MeterProvider
	meter func() metric.Meter
}

func (p badMeters) Meter(string, ...metric.MeterOption) metric.Meter { return p.meter() }

// badMeter makes instruments that panic, no up-down counter, or an error instead of a counter.
type badMeter struct {
	metricnoop.Meter
	err error
}

func (m badMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return &badInstrument{}, m.err
}

func (badMeter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return nil, nil //nolint:nilnil // which is the harm
}

func (badMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return badHistogram{}, nil
}

// badInstrument takes the values that New sets.
type badInstrument struct {
	metricnoop.Int64Counter
}

func (badInstrument) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	if n > 0 {
		panic("oops")
	}
}

type badHistogram struct{ metricnoop.Float64Histogram }

func (badHistogram) Record(context.Context, float64, ...metric.RecordOption) { panic("oops") }

// badTraces makes spans that panic, or none, or panics itself.
type badTraces struct {
	tracenoop.TracerProvider
	start func(context.Context) (context.Context, trace.Span)
}

func (p badTraces) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return badTracer{start: p.start}
}

type badTracer struct {
	tracenoop.Tracer
	start func(context.Context) (context.Context, trace.Span)
}

func (t badTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return t.start(ctx)
}

type badSpan struct{ trace.Span }

// badPropagator panics in each of its methods, or returns no context.
type badPropagator struct{ extracts bool }

func (badPropagator) Inject(context.Context, propagation.TextMapCarrier) { panic("oops") }

func (p badPropagator) Extract(context.Context, propagation.TextMapCarrier) context.Context {
	if p.extracts {
		return nil
	}
	panic("oops")
}

func (badPropagator) Fields() []string { panic("oops") }

func TestBadTelemetry(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]delayq.Option{
		"instruments panic": {delayq.WithMeterProvider(badMeters{meter: func() metric.Meter { return badMeter{} }})},
		"Start panics": {delayq.WithTracerProvider(badTraces{start: func(context.Context) (context.Context, trace.Span) {
			panic("oops")
		}})},
		"spans panic": {delayq.WithTracerProvider(badTraces{start: func(ctx context.Context) (context.Context, trace.Span) {
			return ctx, badSpan{}
		}})},
		"no context": {delayq.WithTracerProvider(badTraces{start: func(context.Context) (context.Context, trace.Span) {
			return nil, tracenoop.Span{}
		}})},
		"propagator panics":           {newWatcher().traces(), delayq.WithPropagator(badPropagator{})},
		"propagator gives no context": {newWatcher().traces(), delayq.WithPropagator(badPropagator{extracts: true})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log journal
				q := newQueue(t, append(opts, log.Logger())...)
				wantSurvival(t, q, func() error { return errHandler })
				if !strings.Contains(name, "no context") {
					log.Want(t, "provider", "panicked")
				}
			})
		})
	}
}

// A provider that cannot is known at the start.
func TestMeterProviderThatFails(t *testing.T) {
	t.Parallel()
	_, err := delayq.New(t.Context(), "orders", delayq.InMemory(), delayq.WithMeterProvider(badMeters{meter: func() metric.Meter { return badMeter{err: errStore} }}))
	wantIs(t, err, errStore)
	_, err = delayq.New(t.Context(), "orders", delayq.InMemory(), delayq.WithMeterProvider(badMeters{meter: func() metric.Meter { panic("oops") }}))
	if err == nil || !strings.Contains(err.Error(), "panicked: oops") {
		t.Errorf("error %v, want the panic", err)
	}
}

// badFormat writes, and cannot read.
type badFormat struct{ unmarshal func() error }

func (badFormat) Marshal(any) ([]byte, error)       { return []byte("body"), nil }
func (f badFormat) Unmarshal(_ []byte, _ any) error { return f.unmarshal() }

func TestBadFormats(t *testing.T) {
	queuetest.Cases(t, map[string]func() error{
		"panics":         func() error { panic("oops") },
		"nil pointer":    func() error { return (*badError)(nil) },
		"Is panics":      func() error { return &badError{onIs: oops} },
		"ends goroutine": func() error { runtime.Goexit(); return nil },
	}, func(t *testing.T, unmarshal func() error) {
		q := newQueue(t)
		typed := delayq.Typed[string](q, badFormat{unmarshal})
		_, err := typed.Push(t.Context(), "")
		must(t, err)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		must(t, typed.Consume(ctx, func(context.Context, string, *delayq.Delivery) error { return nil }, delayq.MaxAttempts(2)))
		wantCounts(t, q, delayq.Stats{Dead: 1})
	})
}

func TestMiddlewareWithoutHandler(t *testing.T) {
	t.Parallel()
	err := newQueue(t).Consume(t.Context(), returning(nil), delayq.Use(func(delayq.Handler) delayq.Handler { return nil }))
	wantInvalid(t, err, "Use", "nil")
}
