package delayq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

type order struct {
	Number int
	Lines  []string
}

func TestTyped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		orders := delayq.Typed[order](q, delayq.JSON)
		want := order{17, []string{"a book", "\x00"}}
		id, err := orders.Push(t.Context(), want, delayq.After(time.Minute))
		must(t, err)
		push(t, q, delayq.ID("broken")) // "body" is no JSON
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		calls := 0
		must(t, orders.Consume(ctx, func(_ context.Context, o order, d *delayq.Delivery) error {
			calls++
			if o.Number != 17 || strings.Join(o.Lines, "|") != "a book|\x00" || d.ID != id || time.Since(began) != time.Minute {
				t.Errorf("%+v in message %s after %v", o, d.ID, time.Since(began))
			}
			return nil
		}))
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
		ls := deadLetters(t, q)
		if len(ls) != 1 || ls[0].ID != "broken" || ls[0].Attempts != 1 || !strings.Contains(ls[0].Reason, "decoding a delayq_test.order: invalid character") {
			t.Errorf("dead letters %+v", ls)
		}
	})
}

func TestTypedRefuses(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	handler := func(context.Context, order, *delayq.Delivery) error { return nil }
	for name, orders := range map[string]*delayq.TypedQueue[order]{
		"no queue":  delayq.Typed[order](nil, delayq.JSON),
		"no format": delayq.Typed[order](q, nil),
	} {
		_, err := orders.Push(t.Context(), order{})
		wantIs(t, err, delayq.ErrInvalid)
		if err := orders.Consume(t.Context(), handler); !strings.Contains(err.Error(), "Typed") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	wantIs(t, delayq.Typed[order](q, delayq.JSON).Consume(t.Context(), nil), delayq.ErrInvalid)
	_, err := delayq.Typed[func()](q, delayq.JSON).Push(t.Context(), func() {})
	if err == nil || !strings.Contains(err.Error(), "delayq: push: encoding a func()") {
		t.Errorf("error %v", err)
	}
	wantCounts(t, q, delayq.Stats{})
}

func TestRouter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		came := make(map[string]int)
		count := func(name string) delayq.Handler {
			return func(context.Context, *delayq.Delivery) error {
				came[name]++
				return nil
			}
		}
		for _, kind := range []string{"paid", "reviewed", "paid", "unknown"} {
			push(t, q, delayq.Type(kind))
		}
		push(t, q)
		consume(t, q, time.Second, delayq.Router{"paid": count("paid"), "reviewed": count("reviewed"), "unknown": nil}.Handle)
		if came["paid"] != 2 || came["reviewed"] != 1 {
			t.Errorf("handled %v", came)
		}
		var reasons []string
		for _, l := range deadLetters(t, q) {
			reasons = append(reasons, l.Reason+".")
		}
		all := strings.Join(reasons, "\n")
		for _, part := range []string{`nobody handles type "unknown"; handled are "paid", "reviewed".`, `it has no header "type"`} {
			if len(reasons) != 2 || !strings.Contains(all, part) {
				t.Errorf("reasons %q lack %q", reasons, part)
			}
		}
	})
}

func TestRouterWithoutType(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		calls := 0
		consume(t, q, time.Second, delayq.Router{"": func(context.Context, *delayq.Delivery) error {
			calls++
			return nil
		}}.Handle)
		if calls != 1 {
			t.Errorf("%d calls, want 1", calls)
		}
		push(t, q, delayq.Type("x"))
		consume(t, q, time.Second, delayq.Router{}.Handle)
		if ls := deadLetters(t, q); len(ls) != 1 || !strings.Contains(ls[0].Reason, "handled are none") {
			t.Errorf("dead letters %+v", ls)
		}
	})
}
