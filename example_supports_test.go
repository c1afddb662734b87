package delayq_test

import (
	"context"
	"fmt"

	"github.com/delayq/delayq"
)

// A page of messages is offered only where the store can list them. [delayq.Require] is for
// features that the program cannot do without.
func ExampleQueue_Supports() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	fmt.Println("list of messages:", q.Supports(delayq.Peeking))
	fmt.Println("survives a restart:", q.Supports(delayq.Durability))
	// Output:
	// list of messages: true
	// survives a restart: false
}
