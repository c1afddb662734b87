package delayq_test

import (
	"context"
	"fmt"

	"github.com/delayq/delayq"
)

// The messages may be lost with the process. Without InMemory, New would log a warning.
func ExampleInMemory() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "thumbnails", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()
	fmt.Println(q, q.Supports(delayq.Durability))
	// Output: memory queue "thumbnails" false
}
