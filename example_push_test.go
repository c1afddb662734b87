package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

func ExampleQueue_Push() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	// Without an option the message is due at once and has an id of its own.
	if _, err := q.Push(ctx, []byte("order 17")); err != nil {
		panic(err)
	}
	id, err := q.Push(ctx, []byte("order 18"),
		delayq.After(30*time.Minute),
		delayq.ID("order-18"),
		delayq.Header("trace", "c0ffee"))
	if err != nil {
		panic(err)
	}
	fmt.Println(id)
	// Output: order-18
}

// A delay counts from the store's own now, so that the pusher's clock does not matter.
func ExampleAfter() {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("order 17"), delayq.After(30*time.Minute)); err != nil {
		panic(err)
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("due", s.HeadDue.Format(time.DateTime))
	// Output: due 2026-05-01 12:30:00
}

// A due time in the past, as after an outage, is due at once.
func ExampleAt() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	missed := time.Date(2020, 1, 1, 9, 0, 0, 0, time.UTC)
	if _, err := q.Push(ctx, []byte("call back"), delayq.At(missed)); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, due %s\n", d.Body, d.Due.Format(time.DateOnly))
	// Output: call back, due 2020-01-01
}

// A message has headers and a body. Values of headers may be any bytes.
func ExampleHeader() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = q.Push(ctx, []byte(`{"order":17}`),
		delayq.Header("content-type", "application/json"),
		delayq.Header("trace", "c0ffee"))
	if err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Headers["content-type"], d.Headers["trace"])
	// Output: application/json c0ffee
}

// A push that may have happened, because the connection broke before the reply, is repeated under
// its id: the message is in the queue once. Push returns its id with the error, too, where the
// caller gave none.
func ExampleID() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for range 2 {
		_, err = q.Push(ctx, []byte("order 17"), delayq.ID("order-17"), delayq.After(30*time.Minute))
		if errors.Is(err, delayq.ErrDuplicate) {
			fmt.Println("it is there already")
			continue
		}
		if err != nil {
			panic(err)
		}
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("messages:", s.Scheduled)
	// Output:
	// it is there already
	// messages: 1
}
