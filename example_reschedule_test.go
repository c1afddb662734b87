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
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithClock(clock))
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

// The server's clock decides: a wrong clock in this process does no harm.
func ExampleQueue_RescheduleAfter() {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	id, err := q.Push(ctx, []byte("order 17"), delayq.After(30*time.Minute))
	if err != nil {
		panic(err)
	}
	clock.Advance(20 * time.Minute)
	if err := q.RescheduleAfter(ctx, id, 30*time.Minute); err != nil {
		panic(err)
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("due", s.HeadDue.UTC().Format(time.TimeOnly))
	// Output: due 12:50:00
}

// The shop is closed on Sunday: what waits for it moves to Monday.
func ExampleQueue_RescheduleBatch() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "deliveries", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	defer q.Close()

	monday := time.Date(2126, 5, 6, 8, 0, 0, 0, time.UTC)
	var moves []delayq.Move
	for _, id := range []string{"order-17", "order-18"} {
		if _, err := q.Push(ctx, nil, delayq.ID(id), delayq.At(monday.AddDate(0, 0, -1))); err != nil {
			panic(err)
		}
		moves = append(moves, delayq.Move{ID: id, Due: monday})
	}
	if err := q.RescheduleBatch(ctx, moves); err != nil {
		panic(err)
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("due", s.HeadDue.UTC().Format(time.DateTime))
	// Output: due 2126-05-06 08:00:00
}
