package recipes_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/delayq/delayq"
)

// changed has the document indexed when it has been quiet for a minute. A change while it is being
// indexed counts for the next time: the worker may have read the document before.
func changed(ctx context.Context, q delayq.Pusher, document string, version int) error {
	_, err := q.Push(ctx, []byte(strconv.Itoa(version)), delayq.ID("index-"+document),
		delayq.After(time.Minute), delayq.ReplaceAfterInFlight(), delayq.MaxWait(10*time.Minute))
	return err
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
