package delayq_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

func wantTyped(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, delayq.ErrInvalid) && !errors.Is(err, delayq.ErrUnsupported) || !utf8.ValidString(err.Error()) {
		t.Fatalf("refused with %v", err)
	}
}

// FuzzMessages pushes whatever may be given, and has a router and a decoder with traces on look at what is taken: it is refused with a
// typed error, or comes out as it was and ends as done or dead.
func FuzzMessages(f *testing.F) {
	f.Add("orders", "id-1", "type", "known", []byte(`{"Number":17}`))
	f.Add("a.b:c-d_e", "", "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", []byte(`[`))
	f.Add("{a}", "", "traceparent", "00-00000000000000000000000000000000-0000000000000000-01", []byte("\x00\xff"))
	f.Add("a*b", "x\n", "tracestate", strings.Repeat("a=b,", 1000), []byte(nil))
	f.Add("#", "\xff", "baggage", "a=%zz;b=\x00,,,=", []byte("*1\r\n$8\r\nFLUSHALL\r\n"))
	f.Add("..", "`rm -rf`", "delayq-due", "1", []byte(`{"Number":1e999}`))
	f.Add("q", "' return redis.call('flushall') --", "type", "\x1b[2J", []byte(strings.Repeat("[", 20_000)))
	f.Add("\x00", "\u202e", "", "v", []byte(`{"number":"18"}`))
	w := newWatcher()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	f.Fuzz(func(t *testing.T, name, id, key, value string, body []byte) {
		w.spans.Reset()
		q, err := delayq.New(t.Context(), name, delayq.WithLogger(silent), w.traces(), delayq.WithPropagator(both))
		if err != nil {
			wantTyped(t, err)
			return
		}
		defer func() { must(t, q.Close()) }()
		opts := []delayq.PushOption{delayq.Header(key, value)}
		if id != "" {
			opts = append(opts, delayq.ID(id))
		}
		if _, err = q.Push(t.Context(), body, opts...); err != nil {
			wantTyped(t, err)
			return
		}
		got := consumeRouted(t, q)
		if id != "" && got.ID != id || string(got.Body) != string(body) || got.Headers[key] != value {
			t.Fatalf("%q %q=%q %q came back as %+v", id, key, value, body, got)
		}
		if s := stats(t, q); s.Scheduled+s.Ready+s.InFlight != 0 || s.Dead > 1 {
			t.Fatalf("left over: %+v", s)
		}
	})
}

// consumeRouted lets a router have the one message that there is, and returns it.
func consumeRouted(t *testing.T, q delayq.Queue) (got *delayq.Delivery) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	handler := delayq.Router{
		"known": delayq.Decoded(delayq.JSON, func(context.Context, order, *delayq.Delivery) error { return nil }),
		"":      delayq.Decoded(delayq.JSON, func(context.Context, json.RawMessage, *delayq.Delivery) error { return nil }),
	}.Handle
	err := q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		defer stop()
		got = d
		if linked := trace.SpanContextFromContext(ctx); !linked.IsValid() {
			t.Error("the handler has no span")
		}
		return handler(ctx, d)
	}, delayq.Workers(1))
	must(t, err)
	return got
}

// FuzzNames wants every store but Redisson to see plain names only.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "orders", "a{b}", "*", "#", "a b", "é", "..", "a/b", "\x00", "\r\n", strings.Repeat("x", 201), "[a-z]", `\`, "'", "K"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		q, err := delayq.New(t.Context(), name, delayq.WithLogger(silent))
		if err != nil {
			wantTyped(t, err)
			return
		}
		must(t, q.Close())
		const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
		foreign := func(r rune) bool { return !strings.ContainsRune(plain, r) }
		if name == "" || len(name) > backend.MaxName || strings.ContainsFunc(name, foreign) {
			t.Fatalf("%q is a queue", name)
		}
	})
}
