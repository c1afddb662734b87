package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

// The shop's bank does not answer: try again in a minute.
func ExampleDelivery_Nack() {
	ctx := context.Background()
	clock := clockwork.NewFakeClock()
	q, err := delayq.New(ctx, "payments", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("payment 4")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	if err := d.Nack(ctx, time.Minute); err != nil {
		panic(err)
	}
	clock.Advance(time.Minute)
	d, err = q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
	// Output: payment 4, attempt 2
}

// The work takes longer than the lease, which [delayq.Queue.Consume] would renew by itself.
func ExampleDelivery_Extend() {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "videos", delayq.InMemory(), delayq.WithClock(clock), delayq.WithLease(time.Minute))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("video 9")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("mine until", d.LeaseUntil().Format(time.TimeOnly))
	clock.Advance(50 * time.Second)
	if err := d.Extend(ctx, time.Hour); err != nil {
		panic(err)
	}
	fmt.Println("mine until", d.LeaseUntil().Format(time.TimeOnly))
	// Output:
	// mine until 12:01:00
	// mine until 13:00:50
}

// A message that no retry can help becomes a dead letter, for a person to look at.
func ExampleDelivery_DeadLetter() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("{not json"), delayq.ID("order-17")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	if err := d.DeadLetter(ctx, "body is not JSON"); err != nil {
		panic(err)
	}
	for letter, err := range q.Dead().All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", letter.ID, letter.Reason)
	}
	// Output: order-17: body is not JSON
}
