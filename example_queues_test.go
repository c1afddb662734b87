package delayq_test

import (
	"context"
	"fmt"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/memory"
)

func ExampleQueues() {
	ctx := context.Background()
	b := memory.New() // or zsetpoll.New(client), with the queues of all processes
	defer b.Close()

	for _, name := range []string{"reminders", "invoices"} {
		q, err := delayq.New(ctx, name, delayq.WithBackend(b))
		if err != nil {
			panic(err)
		}
		defer q.Close()
	}
	names, err := delayq.Queues(ctx, b)
	if err != nil {
		panic(err)
	}
	fmt.Println(names)
	// Output: [invoices reminders]
}
