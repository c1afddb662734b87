package rabbitmq_test

import (
	"slices"
	"testing"
	"time"
)

// TestAcksOneByOne acknowledges leased messages one by one, the last first. Each ack waits for
// lower tags for a bounded time, and returns.
func TestAcksOneByOne(t *testing.T) {
	t.Parallel()
	const n = 30
	ctx := deadline(t, patience)
	q := open(t, shared(t))
	must(t, q.Schedule(ctx, batch("m", n, 0))...)
	held := leases(receiveAll(ctx, t, q, n))
	slices.Reverse(held)
	for i := range held {
		must(t, q.Ack(ctx, held[i:i+1])...)
	}
	wantNoMessage(t, q, 100*time.Millisecond)
}
