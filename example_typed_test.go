package delayq_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/delayq/delayq"
)

type unpaid struct {
	Order  int    `json:"order"`
	Amount string `json:"amount"`
}

func ExampleTyped() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	orders := delayq.Typed[unpaid](q, delayq.JSON)
	if _, err := orders.Push(ctx, unpaid{Order: 17, Amount: "12.50"}, delayq.After(10*time.Millisecond)); err != nil {
		panic(err)
	}
	err = orders.Consume(ctx, func(_ context.Context, o unpaid, d *delayq.Delivery) error {
		fmt.Printf("order %d over %s was not paid: %s\n", o.Order, o.Amount, d.Body)
		stop()
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output: order 17 over 12.50 was not paid: {"order":17,"amount":"12.50"}
}

// One queue for all events of orders; each type has its handler.
func ExampleRouter() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	for _, kind := range []string{"payment-timeout", "fax", "review-default"} {
		if _, err := q.Push(ctx, []byte(`{"order":17}`), delayq.Type(kind)); err != nil {
			panic(err)
		}
	}
	err = q.Consume(ctx, delayq.Router{
		"payment-timeout": func(_ context.Context, d *delayq.Delivery) error {
			fmt.Printf("cancelling %s\n", d.Body)
			return nil
		},
		"review-default": delayq.TypedHandler(delayq.JSON, func(_ context.Context, o unpaid, _ *delayq.Delivery) error {
			fmt.Printf("order %d gets five stars\n", o.Order)
			stop()
			return nil
		}),
	}.Handle)
	if err != nil {
		panic(err)
	}
	for l, err := range q.Dead().All(context.Background()) {
		fmt.Println(l.Reason, err)
	}
	// Output:
	// cancelling {"order":17}
	// order 17 gets five stars
	// message cannot be handled: nobody handles type "fax"; handled are "payment-timeout", "review-default" <nil>
}
