package delayq_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq"
	// Each backend registers its URL scheme when it is imported. This one always is; it is imported
	// here as a redis or rabbitmq backend would be.
	_ "github.com/delayq/delayq/memory"
)

// The URL comes from the configuration, so that another backend needs no other code.
func ExampleOpen() {
	ctx := context.Background()
	q, err := delayq.Open(ctx, "memory:///example-open?max_messages=1000")
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("hello")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", d.Body)
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}

	_, err = delayq.Open(ctx, "carrierpigeon:///orders")
	fmt.Println(errors.Is(err, delayq.ErrUnknownScheme))
	// Output:
	// hello
	// true
}
