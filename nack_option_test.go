package delayq_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

func TestNackHeaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q, ctx := newQueue(t), t.Context()
		push(t, q, delayq.Header("old", "1"), delayq.Header("both", "1"))
		for _, headers := range []map[string]string{{"both": "2", "new": ""}, nil, {"again": "3"}, {}} {
			d := receive(t, q)
			mine := maps.Clone(headers)
			must(t, d.Nack(ctx, time.Hour, delayq.NackHeaders(mine)))
			if mine != nil {
				mine["later"] = "x"
			}
			time.Sleep(time.Hour)
			got := receive(t, q)
			if !maps.Equal(got.Headers, headers) || got.Attempt != d.Attempt+1 || string(got.Body) != "body" {
				t.Errorf("got %v %q, headers %q; want %q", got, got.Body, got.Headers, headers)
			}
			must(t, got.Release(ctx))
		}
	})
}

func TestNackHeadersAreChecked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.wantUnchanged(t, func() {
		for _, c := range []struct {
			headers     map[string]string
			what, value string
		}{
			{map[string]string{"": "x"}, "header key", `""`},
			{map[string]string{"a\x00": "x"}, "header key", `a\x00`},
			{map[string]string{"delayq-x": "x"}, "header key", "delayq-x"},
			{map[string]string{strings.Repeat("k", backend.MaxHeaderKey+1): ""}, "header key", "kkk"},
			{map[string]string{"x": strings.Repeat("x", backend.MaxHeaders)}, "headers", "bytes"},
		} {
			wantInvalid(t, s.held.Nack(t.Context(), 0, delayq.NackHeaders(c.headers)), c.what, c.value)
		}
		wantInvalid(t, s.held.Nack(t.Context(), 0, nil), "nack option", "nil")
		wantInvalid(t, s.held.Nack(t.Context(), -1, delayq.NackHeaders(nil)), "delay", "-1ns")
	})
	must(t, s.held.Nack(t.Context(), time.Hour, delayq.NackHeaders(nil)))
}

// TestNackHeadersUnsupported asks stores without headers, and those that keep them as they were
// pushed.
func TestNackHeadersUnsupported(t *testing.T) {
	cases(t, map[string]backend.Feature{
		"no headers":    backend.Headers,
		"fixed headers": backend.ChangingHeaders,
	}, func(t *testing.T, lack backend.Feature) {
		s := newSeam()
		s.traits = lacking(lack)
		_, err := delayq.New(t.Context(), "jobs", s.option(), delayq.Require(delayq.ChangingHeaders))
		wantIs(t, err, delayq.ErrUnsupported)
		q := newQueue(t, s.option())
		push(t, q)
		d := receive(t, q)
		wantIs(t, d.Nack(t.Context(), 0, delayq.NackHeaders(map[string]string{"k": "v"})), delayq.ErrUnsupported)
		wantIs(t, d.Nack(t.Context(), 0, delayq.NackHeaders(nil)), delayq.ErrUnsupported)
		wantCounts(t, q, delayq.Stats{InFlight: 1})
		must(t, d.Nack(t.Context(), time.Hour))
	})
}

// TestNackHeadersFull has larger headers than a queue has room for.
func TestNackHeadersFull(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.MaxBytes(200))
	q := newQueue(t, delayq.WithBackend(b))
	push(t, q, delayq.Header("old", "1"))
	_, before := b.Usage()
	d := receive(t, q)
	wantIs(t, d.Nack(t.Context(), 0, delayq.NackHeaders(map[string]string{"new": strings.Repeat("n", 200)})), delayq.ErrFull)
	if _, after := b.Usage(); after != before {
		t.Errorf("%d bytes are taken, were %d", after, before)
	}
	must(t, d.Nack(t.Context(), 0, delayq.NackHeaders(map[string]string{"new": strings.Repeat("n", 80)})))
	d = receive(t, q)
	if d.Attempt != 2 || len(d.Headers["new"]) != 80 {
		t.Errorf("got %v with the headers %q", d, d.Headers)
	}
	must(t, d.Ack(t.Context()))
	if n, after := b.Usage(); n != 0 || after != 0 {
		t.Errorf("%d messages and %d bytes are left", n, after)
	}
}
