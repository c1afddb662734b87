package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// An order that is not paid in time cancels itself.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	// A shop would wait for 30 minutes.
	if _, err := q.Push(ctx, []byte("order 17"), delayq.After(10*time.Millisecond)); err != nil {
		panic(err)
	}

	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		fmt.Printf("%s was not paid in time: cancelled\n", d.Body)
		stop() // one order is enough for an example
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output: order 17 was not paid in time: cancelled
}
