package delayq_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
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
