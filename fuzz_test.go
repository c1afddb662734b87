package delayq_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
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

// FuzzMessages pushes any message, and hands stored ones to a router and a decoder with traces on.
// A message is rejected with a typed error, or comes out unchanged and ends as done or dead.
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
		q, err := delayq.New(t.Context(), name, delayq.InMemory(), delayq.WithLogger(silent), w.traces(), delayq.WithPropagator(both))
		if err != nil {
			wantTyped(t, err)
			return
		}
		defer func() { must(t, q.Close()) }()
		opts := []delayq.PushOption{delayq.Header(key, value)}
		if id != "" {
			opts = append(opts, delayq.ID(id), delayq.Replace(), delayq.MaxWait(time.Hour))
		}
		if _, err = q.Push(t.Context(), body, opts...); err != nil {
			wantTyped(t, err)
			return
		}
		if id != "" { // the message is replaced by itself
			_, err = q.Push(t.Context(), body, opts...)
			must(t, err)
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
		"known": delayq.TypedHandler(delayq.JSON, func(context.Context, order, *delayq.Delivery) error { return nil }),
		"":      delayq.TypedHandler(delayq.JSON, func(context.Context, json.RawMessage, *delayq.Delivery) error { return nil }),
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
		q, err := delayq.New(t.Context(), name, delayq.InMemory(), delayq.WithLogger(silent))
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

// FuzzLimits hands out a message with any text as its limits. It comes out, or has expired.
func FuzzLimits(f *testing.F) {
	f.Add("attempts=3 timeout=1m0s expires-after=1h0m0s expires=2100-01-31T18:00:00Z dead")
	f.Add("attempts=-1 timeout=1ns expires-after=-1s expires=1969-12-31T23:59:59Z")
	f.Add("attempts=99999999999999999999 timeout=1e9h expires-after=876000h0m0.000000001s expires=10000-01-01T00:00:00Z")
	f.Add("dead=1 = == expires= \x00 attempts=\xff attempts=1 attempts=2")
	f.Fuzz(func(t *testing.T, text string) {
		s := newSeam()
		q := newQueue(t, s.option())
		raw, err := s.Backend.Open(t.Context(), "orders", backend.Options{Logger: silent})
		must(t, err)
		must(t, errors.Join(raw.Schedule(t.Context(), []backend.Message{{ID: "a", Headers: map[string]string{"delayq-limits": text}}, {ID: "b"}})...))
		d := receive(t, q)
		if l := d.Limits(); d.ID == "a" {
			_, err := q.PushBatch(t.Context(), []delayq.Message{{Limits: &l}})
			if alone := l.DeadLetterExpired && l.ExpiresAfter == 0 && l.Expires.IsZero(); err != nil && !alone {
				t.Fatalf("%q are limits that no push has: %v", text, err)
			}
		} else if all := deadLetters(t, q); stats(t, q).InFlight != 1 || len(all) == 1 && all[0].Reason != delayq.ErrExpired.Error() {
			t.Fatalf("%q: the message is neither handed out nor expired", text)
		}
	})
}
