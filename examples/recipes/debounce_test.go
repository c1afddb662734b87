package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/delayq/delayq"
)

// changed has the document indexed when it has been quiet for a minute. While it is being indexed, it
// is tried again in a second: the worker may have read the document before the change.
func changed(ctx context.Context, q delayq.Pusher, document string, version int) error {
	for {
		_, err := q.Push(ctx, []byte(strconv.Itoa(version)), delayq.ID("index-"+document),
			delayq.After(time.Minute), delayq.Replace(), delayq.MaxWait(10*time.Minute))
		if !errors.Is(err, delayq.ErrInFlight) {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// However often a document changes, one message waits, with the last version.
func Example_debounce() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "index", delayq.InMemory())
	check(err)
	defer q.Close()
	for version := range 1000 {
		check(changed(ctx, q, "handbook", version))
	}
	m, err := q.Get(ctx, "index-handbook")
	check(err)
	stats, err := q.Stats(ctx)
	check(err)
	fmt.Printf("%d message, version %s\n", stats.Scheduled, m.Body)
	// Output:
	// 1 message, version 999
}
