package delayq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/memory"
)

// Queues share a backend, here one with caps on each queue, so that a runaway producer gets an
// error instead of filling the process's memory.
func ExampleNew() {
	ctx := context.Background()
	b := memory.New(memory.MaxMessages(2), memory.MaxBytes(1<<20))
	defer b.Close()

	orders, err := delayq.New(ctx, "orders", delayq.WithBackend(b))
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	reviews, err := delayq.New(ctx, "reviews", delayq.WithBackend(b))
	if err != nil {
		panic(err)
	}
	defer reviews.Close()

	for range 3 {
		_, err = orders.Push(ctx, []byte("an order"))
	}
	fmt.Println("orders full:", errors.Is(err, delayq.ErrFull))
	_, err = reviews.Push(ctx, []byte("a review"))
	fmt.Println("reviews full:", errors.Is(err, delayq.ErrFull))
	// Output:
	// orders full: true
	// reviews full: false
}
