package delayq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
)

// Receive is for a worker with a loop of its own; [delayq.Queue.Consume] is such a loop.
func ExampleQueue_Receive() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17"), delayq.ID("17")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx) // waits until one is due, or ctx ends
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s, attempt %d\n", d.ID, d.Body, d.Attempt)
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	// Output: 17: order 17, attempt 1
}

// A second Ack returns ErrSettled; one after the end of the lease would return ErrLeaseLost.
func ExampleDelivery_Ack() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Ack(ctx))
	fmt.Println(errors.Is(d.Ack(ctx), delayq.ErrSettled))
	// Output:
	// <nil>
	// true
}
