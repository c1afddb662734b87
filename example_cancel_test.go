package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// The order is paid in time, so the message that would cancel it is cancelled.
func ExampleQueue_Cancel() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	id, err := q.Push(ctx, []byte("order 17"), delayq.After(30*time.Minute))
	if err != nil {
		panic(err)
	}
	if err := q.Cancel(ctx, id); err != nil {
		panic(err)
	}
	fmt.Println("it will never be handed out")
	// Output: it will never be handed out
}

// A payment may come while a worker is cancelling the order, or after that. Cancel returns a
// different error for each, and there is no state between.
func ExampleQueue_Cancel_tooLate() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	paid := func(id string) {
		switch err := q.Cancel(ctx, id); {
		case err == nil:
			fmt.Println("in time")
		case errors.Is(err, delayq.ErrInFlight):
			fmt.Println("a worker is at it: ask again later")
		case errors.Is(err, delayq.ErrNotFound):
			fmt.Println("too late: give the money back")
		default:
			panic(err)
		}
	}

	if _, err := q.Push(ctx, nil, delayq.ID("order-17")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	paid("order-17")
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	paid("order-17")
	// Output:
	// a worker is at it: ask again later
	// too late: give the money back
}

// The customer deletes the account, with all that waits for it. One reminder has been sent before.
func ExampleQueue_CancelBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for _, id := range []string{"monday", "tuesday"} {
		if _, err := q.Push(ctx, nil, delayq.ID(id), delayq.After(time.Hour)); err != nil {
			panic(err)
		}
	}
	ids := []string{"sunday", "monday", "tuesday"}
	err = q.CancelBatch(ctx, ids)
	var batch *delayq.BatchError
	if errors.As(err, &batch) {
		for i, err := range batch.Errs {
			fmt.Println(ids[i], err)
		}
	}
	// Output:
	// sunday no such message
	// monday <nil>
	// tuesday <nil>
}
