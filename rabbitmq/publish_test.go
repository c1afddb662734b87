package rabbitmq_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// TestLargeBatches pushes more messages at once than may be unconfirmed, in one call and in
// several.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	q := open(t, vhost(t), rabbitmq.Buckets(time.Hour))
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

// TestMessageTooLarge pushes bodies beyond the broker's max_message_size, beside other pushes. Each
// large body is rejected with the reason, and no other push fails.
func TestMessageTooLarge(t *testing.T) {
	testenv.In(t, testenv.All)
	const limit = 1 << 20
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitConfig("max_message_size", fmt.Sprint(limit)))
	q := open(t, server.URL())
	ctx := deadline(t, patience)
	var pushers sync.WaitGroup
	var over atomic.Bool
	var pushed atomic.Int64
	for i := range 8 {
		pushers.Go(func() {
			for n := 0; !over.Load(); n++ {
				if err := q.Schedule(ctx, message(fmt.Sprint(i, "-", n), 0))[0]; err != nil {
					t.Errorf("another push: %v", err)
				}
				pushed.Add(1)
			}
		})
	}
	for i := range 5 {
		large := backend.Message{ID: fmt.Sprint("large ", i), Body: make([]byte, limit+1)}
		err := q.Schedule(ctx, []backend.Message{large})[0]
		if !errors.Is(err, backend.ErrInvalid) || errors.Is(err, backend.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "body of 1048577 bytes: allowed is up to 1048576 bytes, the broker's max_message_size") {
			t.Errorf("a push of a body too large returned %v", err)
		}
		large.Body = large.Body[1:]
		must(t, q.Schedule(ctx, []backend.Message{large})...)
	}
	mixed := []backend.Message{{ID: "small"}, {ID: "too large", Body: make([]byte, 2*limit)}, {ID: "largest", Body: make([]byte, limit)}}
	for i, err := range q.Schedule(ctx, mixed) {
		if errors.Is(err, backend.ErrInvalid) != (i == 1) || err != nil && i != 1 {
			t.Errorf("message %s of a batch: %v", mixed[i].ID, err)
		}
	}
	over.Store(true)
	pushers.Wait()
	drain(ctx, t, q, int(pushed.Load())+5+2)
}
