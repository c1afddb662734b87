package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// Dead letters are kept for 30 days, and not more than 10,000.
func ExampleDeadLetterRetention() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.DeadLetterRetention(30*24*time.Hour, 10_000))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for _, order := range []string{"order 17", "order 18", "order 19"} {
		if _, err := q.Push(ctx, []byte(order)); err != nil {
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
	// What the queue does by itself from time to time can also be asked for.
	n, err := q.Dead().Trim(ctx, 0, 1)
	fmt.Println(n, "deleted", err)
	for letter, err := range q.Dead().All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s is left\n", letter.Body)
	}
	// Output:
	// 2 deleted <nil>
	// order 19 is left
}
