package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// The reminders of the next hours, page by page, without leasing anything.
func ExampleQueue_Peek() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for _, hours := range []int{3, 1, 2} {
		body := fmt.Sprintf("in %d h", hours)
		if _, err := q.Push(ctx, []byte(body), delayq.After(time.Duration(hours)*time.Hour)); err != nil {
			panic(err)
		}
	}
	for cursor := ""; ; {
		page, next, err := q.Peek(ctx, cursor, 2)
		if err != nil {
			panic(err)
		}
		for _, p := range page {
			fmt.Printf("%s, tried %d times\n", p.Body, p.Attempts)
		}
		if cursor = next; next == "" {
			break
		}
	}
	// Output:
	// in 1 h, tried 0 times
	// in 2 h, tried 0 times
	// in 3 h, tried 0 times
}
