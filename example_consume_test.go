package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/delayq/delayq"
)

// A handler's error brings the message back later, its last one makes it a dead letter.
func ExampleQueue_Consume() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17")); err != nil {
		panic(err)
	}
	handler := func(_ context.Context, d *delayq.Delivery) error {
		fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
		if d.Attempt == 3 {
			stop()
		}
		return errors.New("the warehouse does not answer")
	}
	err = q.Consume(ctx, handler,
		delayq.Workers(8),
		delayq.Retry(delayq.Exponential(time.Millisecond, 10*time.Millisecond)),
		delayq.MaxAttempts(3),
		delayq.Drain(10*time.Second))
	if err != nil {
		panic(err)
	}

	for letter, err := range q.Dead().All(context.Background()) {
		if err != nil {
			panic(err)
		}
		fmt.Println("dead:", letter.Reason)
	}
	// Output:
	// order 17, attempt 1
	// order 17, attempt 2
	// order 17, attempt 3
	// dead: the warehouse does not answer
}
