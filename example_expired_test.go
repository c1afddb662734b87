package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

// A code that comes too late is of no use to the customer. No handler gets it, and somebody hears
// of it.
func ExampleDeadLetterExpired() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	clock := clockwork.NewFakeClock()
	q, err := delayq.New(ctx, "codes", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = q.Push(ctx, []byte("code 4711"), delayq.ID("customer-17"), delayq.ExpiresAfter(10*time.Minute), delayq.DeadLetterExpired())
	if err != nil {
		panic(err)
	}
	clock.Advance(time.Hour) // no worker was there
	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		fmt.Printf("sending %s\n", d.Body)
		return nil
	}, delayq.OnDead(func(_ context.Context, d *delayq.Delivery, reason string, _ error) {
		fmt.Printf("%s: %s\n", d.ID, reason)
		stop()
	}))
	if err != nil {
		panic(err)
	}
	// Output: customer-17: message expired before it was handed out
}
