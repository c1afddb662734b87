package delayq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
)

// A shop that depends on cancelling requires it at the start, so that a backend without it fails
// before the first order.
func ExampleRequire() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.Require(delayq.Cancelling, delayq.Deduplicating))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = delayq.New(ctx, "orders", delayq.InMemory(), delayq.Require(delayq.Durability))
	fmt.Println(errors.Is(err, delayq.ErrUnsupported))
	fmt.Println(err)
	// Output:
	// true
	// delayq: new on queue "orders": backend memory does not support durable messages
}
