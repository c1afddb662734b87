package delayq_test

import (
	"context"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// An ending is a first attempt, with what the metrics and its span tell of it.
type ending struct {
	outcome, failure string
	handler          delayq.Handler
	option           delayq.ConsumeOption
	fails            string // the operation of the store that fails once
}

// endings have all kinds of delayq.failures that a handler or a store alone makes;
// TestBadHandlersAreSeen has those of handlers that do not end with their contexts.
var endings = map[string]ending{
	"success":           {outcome: "acked", handler: returning(nil)},
	"failure":           {outcome: "retried", failure: "handler", handler: returning(errHandler)},
	"last failure":      {outcome: "dead", failure: "handler", handler: returning(errHandler), option: delayq.MaxAttempts(1)},
	"ErrDeadLetter":     {outcome: "dead", failure: "handler", handler: returning(delayq.ErrDeadLetter)},
	"ErrDrop":           {outcome: "dropped", failure: "handler", handler: returning(delayq.ErrDrop)},
	"panic":             {outcome: "retried", failure: "panic", handler: func(context.Context, *delayq.Delivery) error { panic(errHandler) }},
	"Goexit":            {outcome: "retried", failure: "exit", handler: func(context.Context, *delayq.Delivery) error { runtime.Goexit(); return nil }},
	"policy's Goexit":   {outcome: "retried", failure: "exit", handler: returning(errHandler), option: delayq.Retry(policy(exiting))},
	"timeout":           {outcome: "retried", failure: "timeout", handler: obeying, option: delayq.Timeout(time.Second)},
	"stop":              {outcome: "returned", failure: "stopped", handler: obeying, option: delayq.Drain(0)},
	"own ack":           {outcome: "settled", handler: func(ctx context.Context, d *delayq.Delivery) error { return d.Ack(ctx) }},
	"purge":             {outcome: "unsettled", failure: "settle", handler: lose},
	"purge, obeyed":     {outcome: "lost", failure: "lease_lost", handler: loseAndObey},
	"Ack fails":         {outcome: "unsettled", failure: "settle", handler: returning(nil), fails: "ack"},
	"Receive fails":     {outcome: "acked", failure: "receive", handler: returning(nil), fails: "receive"},
	"a renewal fails":   {outcome: "acked", failure: "renew", handler: slow, fails: "extend"},
	"a command refused": {outcome: "acked", failure: "refused", handler: returning(nil), fails: "refused"},
}

// shownFailures are the further kinds that the sections on bad handlers show.
var shownFailures = []string{"timeout_ignored", "stop_ignored", "abandoned"}

func obeying(ctx context.Context, _ *delayq.Delivery) error {
	<-ctx.Done()
	return ctx.Err()
}

func exiting(int, error) time.Duration { runtime.Goexit(); return 0 }

func slow(context.Context, *delayq.Delivery) error {
	time.Sleep(time.Minute)
	return nil
}

// lose purges the queue under its handler, which ends the lease.
func lose(ctx context.Context, _ *delayq.Delivery) error {
	_, err := ctx.Value(queueKey{}).(delayq.Queue).Purge(ctx)
	return err
}

func loseAndObey(ctx context.Context, d *delayq.Delivery) error {
	_ = lose(ctx, d)
	return obeying(ctx, d)
}

type queueKey struct{}

func TestEndingsAreSeen(t *testing.T) {
	queuetest.Cases(t, endings, func(t *testing.T, tt ending) {
		w, s := newWatcher(), newSeam()
		s.before = once(tt.fails)
		q := newQueue(t, s.option(), w.metrics(), w.traces())
		if tt.fails == "refused" {
			s.refused()
		}
		push(t, q)
		opts := []delayq.ConsumeOption{every(time.Hour)}
		if tt.option != nil {
			opts = append(opts, tt.option)
		}
		consume(t, q, 10*time.Minute, func(ctx context.Context, d *delayq.Delivery) error {
			if d.Attempt > 1 {
				return nil
			}
			return tt.handler(context.WithValue(ctx, queueKey{}, q), d)
		}, opts...)

		handled := w.ended(trace.SpanKindConsumer)[0]
		wantSpan(t, handled, outcome(tt.outcome))
		w.wantTotal(t, 0, "delayq.handlers.running")
		w.wantTotal(t, 0, "delayq.workers")
		if tt.failure == "" {
			w.wantTotal(t, 0, "delayq.failures")
			return
		}
		w.wantTotal(t, 1, "delayq.failures")
		w.wantTotal(t, 1, "delayq.failures", errorType(tt.failure))
		if tt.outcome == "acked" { // the failure is not the message's
			return
		}
		wantSpan(t, handled, errorType(tt.failure))
		if s := handled.Status(); s.Code != codes.Error || s.Description != tt.failure {
			t.Errorf("status %+v, want the error %q", s, tt.failure)
		}
		if events := handled.Events(); len(events) != 1 || events[0].Name != "exception" {
			t.Errorf("events %+v, want the error", events)
		}
	})
}

func TestFailuresAreDocumented(t *testing.T) {
	t.Parallel()
	var rows, counted []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ").FindAllStringSubmatch(observability(t), -1) {
		rows = append(rows, row[1])
	}
	kinds := slices.Clone(shownFailures)
	for _, tt := range endings {
		if tt.failure != "" && !slices.Contains(kinds, tt.failure) {
			kinds = append(kinds, tt.failure)
		}
	}
	w := newWatcher()
	q := newQueue(t, w.metrics())
	must(t, start(t, q, returning(nil)).end())
	for _, p := range pointsOf(t, w.collect(t)["delayq.failures"]) {
		kind, _ := p.attributes.Value("error.type")
		counted = append(counted, kind.AsString())
	}
	slices.Sort(rows)
	slices.Sort(kinds)
	slices.Sort(counted)
	if !slices.Equal(rows, kinds) || !slices.Equal(rows, counted) {
		t.Errorf("docs/observability.md has the failures\n%q, tests\n%q, Consume begins with\n%q", rows, kinds, counted)
	}
}
