package delayq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
)

// What became of several messages. One of them is done.
func ExampleQueue_GetBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, nil, delayq.ID("order-17")); err != nil {
		panic(err)
	}
	ids := []string{"order-16", "order-17"}
	found, err := q.GetBatch(ctx, ids)
	var each *delayq.BatchError
	if err != nil && !errors.As(err, &each) {
		panic(err)
	}
	for i, m := range found {
		if each != nil && each.Errs[i] != nil {
			fmt.Printf("%s: %t\n", ids[i], errors.Is(each.Errs[i], delayq.ErrNotFound))
			continue
		}
		fmt.Printf("%s: %v\n", m.ID, m.State)
	}
	// Output:
	// order-16: true
	// order-17: ready
}
