package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

// The customer asked for ten minutes more.
func ExampleQueue_Reschedule() {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "orders", delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	id, err := q.Push(ctx, []byte("order 17"), delayq.After(30*time.Minute))
	if err != nil {
		panic(err)
	}
	if err := q.Reschedule(ctx, id, clock.Now().Add(40*time.Minute)); err != nil {
		panic(err)
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("due", s.HeadDue.Format(time.TimeOnly))
	// Output: due 12:40:00
}
