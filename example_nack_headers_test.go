package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// A delay that doubles with each retry travels with the message.
func ExampleNackHeaders() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.Require(delayq.ChangingHeaders))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17"), delayq.Header("delay", "10ms")); err != nil {
		panic(err)
	}
	for range 3 {
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		delay, err := time.ParseDuration(d.Headers["delay"])
		if err != nil {
			panic(err)
		}
		fmt.Println("attempt", d.Attempt, "waits", delay)
		d.Headers["delay"] = (2 * delay).String()
		if err := d.Nack(ctx, delay, delayq.NackHeaders(d.Headers)); err != nil {
			panic(err)
		}
	}
	// Output:
	// attempt 1 waits 10ms
	// attempt 2 waits 20ms
	// attempt 3 waits 40ms
}
