package delayq_test

import (
	"context"
	"slices"
	"testing"

	"github.com/delayq/delayq"
)

// deprecated are methods under their old names, which TestOldNames calls.
var deprecated = []string{"Delivery.Dead", "Queue.DeadBatch"}

// TestOldNames uses each name that is kept for a release.
func TestOldNames(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	pushMany(t, q, 2)
	must(t, receive(t, q).Dead(t.Context(), "first"))
	must(t, q.DeadBatch(t.Context(), []*delayq.Delivery{receive(t, q)}, "second"))
	var reasons []string
	for _, l := range deadLetters(t, q) {
		reasons = append(reasons, l.Reason)
	}
	if !slices.Equal(reasons, []string{"first", "second"}) {
		t.Errorf("the dead letters have the reasons %q", reasons)
	}

	var got string
	decoded := func(f delayq.Format) delayq.Handler {
		return delayq.Decoded(f, func(_ context.Context, v string, _ *delayq.Delivery) error {
			got = v
			return nil
		})
	}
	if err := decoded(delayq.JSON)(t.Context(), &delayq.Delivery{Body: []byte(`"hello"`)}); err != nil || got != "hello" {
		t.Errorf("Decoded read %q, error %v", got, err)
	}
	if delayq.Headers != delayq.KeepingHeaders {
		t.Error("the old name of the feature is another feature")
	}
}
