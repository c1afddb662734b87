package rabbitmq_test

import (
	"slices"
	"testing"
	"time"
)

// TestAcksOneByOne acknowledges leased messages one by one, the last first. Each ack waits for
// others that do not come, and returns all the same.
func TestAcksOneByOne(t *testing.T) {
	t.Parallel()
	const n = 30
	ctx := deadline(t, patience)
	q := open(t, shared(t))
	must(t, q.Schedule(ctx, batch("m", n, 0))...)
	held := leases(nil)
	for len(held) < n {
		ds, err := q.Receive(ctx, n, time.Minute)
		must(t, err)
		held = append(held, leases(ds)...)
	}
	slices.Reverse(held)
	for i := range held {
		must(t, q.Ack(ctx, held[i:i+1])...)
	}
	nothing(t, q, 100*time.Millisecond)
}
