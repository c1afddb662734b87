package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delayq/delayq"
)

// importAll pushes messages with ids of their own, a thousand a call. When it fails, call it again
// with the same messages: those that the store has return ErrDuplicate.
func importAll(ctx context.Context, q delayq.Pusher, all []delayq.Message) (added int, err error) {
	for chunk := range slices.Chunk(all, 1000) {
		_, err := q.PushBatch(ctx, chunk)
		var each *delayq.BatchError
		switch {
		case err == nil:
			added += len(chunk)
		case errors.As(err, &each):
			for i, err := range each.Errs {
				if err == nil {
					added++
				} else if !errors.Is(err, delayq.ErrDuplicate) {
					return added, fmt.Errorf("importing %s: %w", chunk[i].ID, err)
				}
			}
		default:
			return added, err
		}
	}
	return added, nil
}

// An import that is repeated adds nothing.
func Example_import() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reviews", delayq.InMemory())
	check(err)
	defer q.Close()
	var reviews []delayq.Message
	for i := range 2500 {
		reviews = append(reviews, delayq.Message{ID: fmt.Sprint("review-", i), Delay: 7 * 24 * time.Hour})
	}
	fmt.Println(importAll(ctx, q, reviews[:1200]))
	fmt.Println(importAll(ctx, q, reviews))
	fmt.Println(importAll(ctx, q, reviews))
	// Output:
	// 1200 <nil>
	// 1300 <nil>
	// 0 <nil>
}
