package delayq_test

import (
	"context"
	"fmt"

	"github.com/delayq/delayq"
)

// The URL comes from the environment and names a store, as REDIS_URL does. The program names its
// queues. With redis:// it is delayq.Open(ctx, os.Getenv("REDIS_URL"), delayq.Named("orders")), and
// the import of package zsetpoll.
func ExampleNamed() {
	ctx := context.Background()
	const storeURL = "memory://example-named"
	for _, name := range []string{"orders", "refunds"} {
		q, err := delayq.Open(ctx, storeURL, delayq.Named(name))
		if err != nil {
			panic(err)
		}
		defer q.Close()
		fmt.Println(q)
	}
	// Output:
	// memory queue "orders"
	// memory queue "refunds"
}
