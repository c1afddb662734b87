package delayq_test

import (
	"context"
	"testing"

	"github.com/delayq/delayq"
)

// TestContextOfNewBoundsTheOpeningAlone ends New's context and uses the queue.
func TestContextOfNewBoundsTheOpeningAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q, err := delayq.New(ctx, "orders")
	must(t, err)
	defer func() { must(t, q.Close()) }()
	cancel()
	push(t, q)
	d, err := q.Receive(t.Context())
	must(t, err)
	must(t, d.Ack(t.Context()))
}
