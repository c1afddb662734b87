package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// What became of a message, by its id.
func ExampleQueue_Get() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders")
	if err != nil {
		panic(err)
	}
	defer q.Close()

	show := func() {
		m, err := q.Get(ctx, "order-17")
		switch {
		case errors.Is(err, delayq.ErrNotFound):
			fmt.Println("not there")
		case err != nil:
			panic(err)
		default:
			fmt.Printf("%v, %d attempts: %s\n", m.State, m.Attempts, m.Body)
		}
	}
	if _, err := q.Push(ctx, []byte("pay"), delayq.ID("order-17"), delayq.After(time.Millisecond)); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	show()
	if err := d.Nack(ctx, time.Hour); err != nil {
		panic(err)
	}
	show()
	if err := q.Cancel(ctx, "order-17"); err != nil {
		panic(err)
	}
	show()
	// Output:
	// in flight, 1 attempts: pay
	// scheduled, 1 attempts: pay
	// not there
}

// The error of a push says what has its id.
func ExampleQueue_Push_duplicate() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders")
	if err != nil {
		panic(err)
	}
	defer q.Close()

	push := func() error {
		_, err := q.Push(ctx, []byte("pay"), delayq.ID("order-17"))
		return err
	}
	if err := push(); err != nil {
		panic(err)
	}
	fmt.Println(push())
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(push())
	if err := d.DeadLetter(ctx, "no such customer"); err != nil {
		panic(err)
	}
	fmt.Println(push())
	// Output:
	// delayq: push on queue "reminders", message "order-17": this id is taken: its message is scheduled
	// delayq: push on queue "reminders", message "order-17": this id is taken: its message is in flight
	// delayq: push on queue "reminders", message "order-17": this id is taken: its message is dead
}
