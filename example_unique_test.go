package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// A customer gets no second reminder of an order within a day, also when the first is done.
func ExampleUniqueFor() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	remind := func(order string) {
		_, err := q.Push(ctx, nil, delayq.ID("remind-"+order), delayq.UniqueFor(24*time.Hour))
		switch {
		case err == nil:
			fmt.Println("order", order, "will be reminded of")
		case errors.Is(err, delayq.ErrDuplicate):
			fmt.Println("order", order, "has been reminded of already")
		default:
			panic(err)
		}
	}
	remind("17")
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	remind("17")
	// Output:
	// order 17 will be reminded of
	// order 17 has been reminded of already
}
