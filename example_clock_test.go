package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

// A review that defaults after seven days, tested in virtual time.
func ExampleWithClock() {
	ctx := context.Background()
	clock := clockwork.NewFakeClock()
	q, err := delayq.New(ctx, "reviews", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	const week = 7 * 24 * time.Hour
	if _, err := q.Push(ctx, []byte("review of order 17"), delayq.After(week)); err != nil {
		panic(err)
	}

	received := make(chan *delayq.Delivery)
	go func() {
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		received <- d
	}()
	if err := clock.BlockUntilContext(ctx, 1); err != nil { // until Receive sleeps
		panic(err)
	}
	clock.Advance(week)
	d := <-received
	fmt.Printf("%s defaults to five stars, late by %v\n", d.Body, clock.Since(d.Due))
	// Output: review of order 17 defaults to five stars, late by 0s
}
