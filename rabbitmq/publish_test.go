package rabbitmq_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func batch(prefix string, n int, delay time.Duration) []backend.Message {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = message(fmt.Sprintf("%s-%d", prefix, i), delay)[0]
	}
	return ms
}

// TestLargeBatches pushes more messages at once than may be unconfirmed, in one call and in
// several.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	q := open(t, vhost(t))
	ctx := deadline(t, patience)
	must(t, q.Schedule(ctx, batch("alone", 5000, time.Hour))...)
	var calls sync.WaitGroup
	for i := range 30 {
		calls.Go(func() {
			if err := errors.Join(q.Schedule(ctx, batch(fmt.Sprint(i), 200, time.Hour))...); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}
