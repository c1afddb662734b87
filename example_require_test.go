package delayq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
)

// A shop that lives on cancelling says so at the start, and notices a backend that cannot
// before the first order.
func ExampleRequire() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.Require(delayq.Cancelling, delayq.Deduplicating))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = delayq.New(ctx, "orders", delayq.Require(delayq.Durability))
	fmt.Println(errors.Is(err, delayq.ErrUnsupported))
	fmt.Println(err)
	// Output:
	// true
	// delayq: new on queue "orders": backend memory does not support durable messages
}
