package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

// A worker takes a message and dies. When its lease ends, another worker gets the message.
func ExampleWithLease() {
	ctx := context.Background()
	clock := clockwork.NewFakeClock()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithClock(clock), delayq.WithLease(10*time.Second))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17")); err != nil {
		panic(err)
	}
	if _, err := q.Receive(ctx); err != nil { // by the worker that dies
		panic(err)
	}
	clock.Advance(10 * time.Second)
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
	// Output: order 17, attempt 2
}
