package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// A worker that stops gives back messages that it has not begun. Another one gets them untouched.
func ExampleDelivery_Release() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	if err := d.Release(ctx); err != nil {
		panic(err)
	}
	d, err = q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, attempt %d\n", d.Body, d.Attempt)
	// Output: order 17, attempt 1
}

// A batch that cannot be handled now is delayed together.
func ExampleQueue_NackBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.PushBatch(ctx, make([]delayq.Message, 3)); err != nil {
		panic(err)
	}
	ds, err := q.ReceiveBatch(ctx, 100)
	if err != nil {
		panic(err)
	}
	if err := q.NackBatch(ctx, ds, time.Minute); err != nil {
		panic(err)
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Scheduled, "wait")
	// Output: 3 wait
}

// A program that takes options rejects bad ones when it starts, not when it consumes.
func ExampleValidateConsumeOptions() {
	fmt.Println(delayq.ValidateConsumeOptions(delayq.Workers(32), delayq.MaxAttempts(-1)))
	// Output: delayq: consume: invalid MaxAttempts -1: allowed is 0 to 1073741824
}
