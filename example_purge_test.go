package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// A test environment starts from nothing. A worker that still holds a message gets ErrLeaseLost.
func ExampleQueue_Purge() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.PushBatch(ctx, []delayq.Message{{}, {Delay: time.Minute}, {Delay: time.Hour}}); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	n, err := q.Purge(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("deleted", n)
	fmt.Println("lease lost:", errors.Is(d.Ack(ctx), delayq.ErrLeaseLost))
	// Output:
	// deleted 3
	// lease lost: true
}
