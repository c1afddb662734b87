package delayq_test

import (
	"context"
	"fmt"

	"github.com/delayq/delayq"
)

// Many small messages cost least when they are taken and acknowledged together.
func ExampleQueue_ReceiveBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = q.PushBatch(ctx, []delayq.Message{{Body: []byte("Ann")}, {Body: []byte("Bob")}, {Body: []byte("Cem")}})
	if err != nil {
		panic(err)
	}
	ds, err := q.ReceiveBatch(ctx, 100)
	if err != nil {
		panic(err)
	}
	for _, d := range ds {
		fmt.Printf("remind %s\n", d.Body)
	}
	if err := q.AckBatch(ctx, ds); err != nil {
		panic(err)
	}
	// Output:
	// remind Ann
	// remind Bob
	// remind Cem
}

// An entry of the error belongs to the delivery at the same place.
func ExampleQueue_AckBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.PushBatch(ctx, make([]delayq.Message, 3)); err != nil {
		panic(err)
	}
	ds, err := q.ReceiveBatch(ctx, 3)
	if err != nil {
		panic(err)
	}
	if err := ds[1].Nack(ctx, 0); err != nil {
		panic(err)
	}
	fmt.Println(q.AckBatch(ctx, ds))
	// Output: delayq: ack on queue "reminders": 1 of 3 messages failed; the first is Errs[1]: delivery is settled already
}
