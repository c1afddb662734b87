package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/memory"
)

// Every error names the operation, the queue and the message; errors.Is finds the cause.
func ExampleOpError() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	err = q.Cancel(ctx, "order-17")
	fmt.Println(err)
	fmt.Println(errors.Is(err, delayq.ErrNotFound))

	var failed *delayq.OpError
	if errors.As(err, &failed) {
		fmt.Println(failed.Op, failed.Queue, failed.ID)
	}
	// Output:
	// delayq: cancel on queue "orders", message "order-17": no such message
	// true
	// cancel orders order-17
}

func ExampleInvalidError() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = q.Push(ctx, nil, delayq.After(-time.Minute))
	var invalid *delayq.InvalidError
	if errors.As(err, &invalid) {
		fmt.Println("what:", invalid.What)
		fmt.Println("value:", invalid.Value)
		fmt.Println("allowed:", invalid.Allowed)
	}
	// Output:
	// what: delay
	// value: -1m0s
	// allowed: 0 to 876000h0m0s
}

// Messages that the store rejected are pushed again later, under their ids.
func ExampleBatchError() {
	ctx := context.Background()
	b := memory.New(memory.MaxMessages(2))
	defer b.Close()
	q, err := delayq.New(ctx, "orders", delayq.WithBackend(b))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	ids, err := q.PushBatch(ctx, []delayq.Message{{ID: "order-1"}, {ID: "order-1"}, {ID: "order-2"}, {ID: "order-3"}})
	var failed *delayq.BatchError
	if errors.As(err, &failed) {
		for i, err := range failed.Errs {
			if err != nil && !errors.Is(err, delayq.ErrDuplicate) {
				fmt.Printf("%s later: %v\n", ids[i], err)
			}
		}
	}
	// Output: order-3 later: queue is full
}

func ExampleUnsupportedError() {
	ctx := context.Background()
	_, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.Require(delayq.Durability))

	var missing *delayq.UnsupportedError
	if errors.As(err, &missing) {
		fmt.Println(missing.Backend, "lacks", missing.Op)
	}
	// Output: memory lacks durable messages
}
