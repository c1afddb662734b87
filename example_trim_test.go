package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// Of many dead letters the two youngest stay. [delayq.DeadLetterRetention] does this all the time.
func ExampleDeadLetters_Trim() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for i := range 5 {
		if _, err := q.Push(ctx, nil, delayq.ID(fmt.Sprint("order-", i))); err != nil {
			panic(err)
		}
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		if err := d.DeadLetter(ctx, "no such customer"); err != nil {
			panic(err)
		}
	}
	removed, err := q.Dead().Trim(ctx, 90*24*time.Hour, 2)
	if err != nil {
		panic(err)
	}
	fmt.Println("removed:", removed)
	for letter, err := range q.Dead().All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(letter.ID)
	}
	// Output:
	// removed: 3
	// order-3
	// order-4
}
