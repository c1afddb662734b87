package delayq_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/delayq/delayq"
)

// Middleware sees every message before the handler, and its error after.
func ExampleUse() {
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
	audit := func(next delayq.Handler) delayq.Handler {
		return func(ctx context.Context, d *delayq.Delivery) error {
			err := next(ctx, d)
			fmt.Printf("%s ended with %v\n", d.Body, err)
			return err
		}
	}
	err = q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
		stop()
		return nil
	}, delayq.Use(audit), delayq.Timeout(time.Minute), delayq.RateLimit(100, 10))
	if err != nil {
		panic(err)
	}
	// Output: order 17 ended with <nil>
}

// While a service that handlers call is down, the messages stay where they are, and spend no
// attempts.
func ExampleQueue_Pause() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "mails", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	q.Pause()
	if _, err := q.Push(ctx, []byte("reminder")); err != nil {
		panic(err)
	}
	time.AfterFunc(20*time.Millisecond, func() {
		fmt.Println("the mail server is back")
		q.Resume()
	})
	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		fmt.Printf("%s sent at attempt %d\n", d.Body, d.Attempt)
		stop()
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// the mail server is back
	// reminder sent at attempt 1
}
