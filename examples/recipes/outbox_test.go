package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// row is a row of the table outbox, written in the transaction that stores the order.
type row struct {
	id   string // of the message
	body []byte
	due  time.Time
}

// relay moves rows to the queue, and deletes them when the queue has them. Two relays at once do no
// harm: the second push of an id returns ErrDuplicate.
func relay(ctx context.Context, q delayq.Pusher, rows []row, remove func(id string) error) error {
	ms := make([]delayq.Message, len(rows))
	for i, r := range rows {
		ms[i] = delayq.Message{ID: r.id, Body: r.body, Due: r.due, UniqueFor: 24 * time.Hour}
	}
	_, err := q.PushBatch(ctx, ms)
	var each *delayq.BatchError
	if err != nil && !errors.As(err, &each) {
		return err // none is known to be stored: the rows stay for the next try
	}
	for i, r := range rows {
		if each != nil && each.Errs[i] != nil && !errors.Is(each.Errs[i], delayq.ErrDuplicate) {
			continue // the row stays for the next try
		}
		if err := remove(r.id); err != nil {
			return err
		}
	}
	return nil
}

// A relay that dies after its push and before its delete pushes the same rows again.
func Example_outbox() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	check(err)
	defer q.Close()
	due := time.Now().Add(30 * time.Minute)
	rows := []row{{"payment-timeout-17", []byte("17"), due}, {"payment-timeout-18", []byte("18"), due}}

	fmt.Println(relay(ctx, q, rows, func(id string) error { return errors.New("connection lost") }))
	fmt.Println(relay(ctx, q, rows, func(id string) error { fmt.Println("delete", id); return nil }))
	stats, err := q.Stats(ctx)
	check(err)
	fmt.Println("messages:", stats.Scheduled)
	// Output:
	// connection lost
	// delete payment-timeout-17
	// delete payment-timeout-18
	// <nil>
	// messages: 2
}
