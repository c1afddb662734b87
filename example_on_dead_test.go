package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/delayq/delayq"
)

// Somebody is told when a message is given up, and why.
func ExampleOnDead() {
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
	tell := func(_ context.Context, d *delayq.Delivery, reason string, cause error) {
		fmt.Printf("%s, attempt %d: %s\n", d.Body, d.Attempt, reason)
		fmt.Println("no use to try again:", errors.Is(cause, delayq.ErrDeadLetter))
		stop()
	}
	err = q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
		return fmt.Errorf("%w: no such customer", delayq.ErrDeadLetter)
	}, delayq.OnDead(tell))
	if err != nil {
		panic(err)
	}
	// Output:
	// order 17, attempt 1: message cannot be handled: no such customer
	// no use to try again: true
}
