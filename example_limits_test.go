package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/delayq/delayq"
)

// A refund is tried three times, whatever MaxAttempts the consumer has. Then somebody looks at it.
func ExampleAttempts() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "payments", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("refund of order 17"), delayq.Attempts(3)); err != nil {
		panic(err)
	}
	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		fmt.Printf("attempt %d of %d\n", d.Attempt, d.Limits().Attempts)
		return errors.New("the bank does not answer")
	}, delayq.Retry(delayq.Delays{time.Millisecond}), delayq.OnDead(func(_ context.Context, d *delayq.Delivery, reason string, _ error) {
		fmt.Printf("%s is dead: %s\n", d.Body, reason)
		stop()
	}))
	if err != nil {
		panic(err)
	}
	// Output:
	// attempt 1 of 3
	// attempt 2 of 3
	// attempt 3 of 3
	// refund of order 17 is dead: the bank does not answer
}

// A report may take longer than the other messages of its queue.
func ExampleHandlerTimeout() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "jobs", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("report"), delayq.HandlerTimeout(time.Hour)); err != nil {
		panic(err)
	}
	err = q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		time.Sleep(5 * time.Millisecond)
		fmt.Printf("%s is done: %v\n", d.Body, ctx.Err())
		stop()
		return nil
	}, delayq.Timeout(time.Millisecond))
	if err != nil {
		panic(err)
	}
	// Output: report is done: <nil>
}

// A code to log in is worth nothing after its time. When no worker was there, nobody sends it.
func ExampleExpiresAfter() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "codes", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("code 4711"), delayq.ExpiresAfter(time.Millisecond)); err != nil {
		panic(err)
	}
	time.Sleep(2 * time.Millisecond)
	if _, err := q.Push(ctx, []byte("code 4712"), delayq.ExpiresAfter(time.Minute)); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s is sent\n", d.Body)
	// Output: code 4712 is sent
}

// A bid counts until the auction ends. One that comes too late is kept as a dead letter.
func ExampleExpires() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "bids", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	end := time.Now().Add(-time.Second)
	if _, err := q.Push(ctx, []byte("bid of 17"), delayq.Expires(end), delayq.DeadLetterExpired()); err != nil {
		panic(err)
	}
	if _, err := q.Push(ctx, []byte("bid of 18")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s counts\n", d.Body)
	for letter, err := range q.Dead().All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", letter.Body, letter.Reason)
	}
	// Output:
	// bid of 18 counts
	// bid of 17: message expired before it was handed out
}

// A batch may have limits of its own too.
func ExampleLimits() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "invoices", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	limits := &delayq.Limits{Attempts: 3, HandlerTimeout: time.Minute}
	if _, err := q.PushBatch(ctx, []delayq.Message{
		{Body: []byte("invoice 17"), Limits: limits},
		{Body: []byte("invoice 18"), Limits: limits},
	}); err != nil {
		panic(err)
	}
	page, _, err := q.Peek(ctx, "", 10)
	if err != nil {
		panic(err)
	}
	for _, m := range page {
		fmt.Printf("%s: %d attempts of %v\n", m.Body, m.Limits.Attempts, m.Limits.HandlerTimeout)
	}
	// Output:
	// invoice 17: 3 attempts of 1m0s
	// invoice 18: 3 attempts of 1m0s
}
