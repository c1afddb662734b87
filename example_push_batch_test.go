package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// One round trip for many messages. Messages that the store rejects do not keep the others out.
func ExampleQueue_PushBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reviews", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, nil, delayq.ID("review-2")); err != nil {
		panic(err)
	}
	ids, err := q.PushBatch(ctx, []delayq.Message{
		{ID: "review-1", Body: []byte("one"), Delay: 7 * 24 * time.Hour},
		{ID: "review-2", Body: []byte("two"), Delay: 7 * 24 * time.Hour},
		{ID: "review-3", Body: []byte("three"), Due: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)},
	})

	var failed *delayq.BatchError
	if errors.As(err, &failed) {
		for i, err := range failed.Errs {
			fmt.Println(ids[i], err)
		}
	}
	// Output:
	// review-1 <nil>
	// review-2 this id is taken: its message is scheduled
	// review-3 <nil>
}
