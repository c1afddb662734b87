package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// timer says what an order's page shows about its timer.
func timer(ctx context.Context, q delayq.Inspector, order string) (string, error) {
	m, err := q.Get(ctx, timerOf(order))
	switch {
	case errors.Is(err, delayq.ErrNotFound):
		return "no timer: the order is paid or cancelled", nil
	case err != nil:
		return "", err
	case m.State == delayq.StateScheduled:
		return "to be paid until " + m.Due.Format(time.DateTime), nil
	case m.State == delayq.StateDead:
		return "the order could not be cancelled: " + m.Reason, nil
	default: // ready or in flight
		return "being cancelled now", nil
	}
}

// The timer of an order through its life, as the order's page shows it.
func Example_look() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	check(err)
	defer q.Close()
	show := func() {
		text, err := timer(ctx, q, "17")
		check(err)
		fmt.Println(text)
	}

	due := time.Date(2150, time.July, 1, 9, 30, 0, 0, time.UTC)
	_, err = q.Push(ctx, []byte("17"), delayq.ID(timerOf("17")), delayq.At(due))
	check(err)
	show()
	check(q.Reschedule(ctx, timerOf("17"), time.Now()))
	d, err := q.Receive(ctx)
	check(err)
	show()
	check(d.DeadLetter(ctx, "no such order"))
	show()
	check(q.Dead().Delete(ctx, timerOf("17")))
	show()
	// Output:
	// to be paid until 2150-07-01 09:30:00
	// being cancelled now
	// the order could not be cancelled: no such order
	// no timer: the order is paid or cancelled
}
