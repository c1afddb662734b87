package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// Ending the context stops a consumer gracefully: running handlers finish, and other messages stay
// in the queue. A program takes the context from signal.NotifyContext.
func Example_gracefulShutdown() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.PushBatch(ctx, make([]delayq.Message, 3)); err != nil {
		panic(err)
	}
	err = q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		stop() // as a SIGTERM would
		fmt.Println("handler told to stop:", ctx.Err() != nil)
		return nil
	}, delayq.Drain(20*time.Second))
	fmt.Println("consume:", err)

	s, err := q.Stats(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println("left for the next start:", s.Ready)
	// Output:
	// handler told to stop: false
	// consume: <nil>
	// left for the next start: 2
}

// Close waits for consumers, then wakes calls that wait for a message.
func ExampleQueue_Close() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}

	woken := make(chan error)
	go func() {
		_, err := q.Receive(ctx)
		woken <- err
	}()
	if err := q.Close(); err != nil {
		panic(err)
	}
	fmt.Println(errors.Is(<-woken, delayq.ErrClosed))
	_, err = q.Push(ctx, nil)
	fmt.Println(errors.Is(err, delayq.ErrClosed))
	// Output:
	// true
	// true
}
