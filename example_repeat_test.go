package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
)

// Every process of the service runs the same Repeat; each hour there is one message. Two hours pass here in no time.
func ExampleQueue_Repeat() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 11, 30, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "reports", delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for range 3 { // in three processes, say
		go func() {
			if err := q.Repeat(ctx, "hourly", delayq.Every(time.Hour), []byte("figures")); err != nil {
				panic(err)
			}
		}()
	}
	for range 2 {
		if err := clock.BlockUntilContext(ctx, 3); err != nil { // until all sleep
			panic(err)
		}
		clock.Advance(30 * time.Minute)
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.ID)
		if err := d.Ack(ctx); err != nil {
			panic(err)
		}
		clock.Advance(30 * time.Minute)
	}
	// Output:
	// hourly@2026-05-01T12:00:00Z
	// hourly@2026-05-01T13:00:00Z
}

// At half past six on working days, by the clocks of Berlin.
func ExampleCronIn() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	s, err := delayq.CronIn("30 6 * * MON-FRI", berlin)
	if err != nil {
		panic(err)
	}
	next := time.Date(2026, 10, 22, 12, 0, 0, 0, time.UTC)
	for range 2 { // the clocks are set back on the 25th
		next = s.Next(next)
		fmt.Println(next.Format(time.RFC3339))
	}
	// Output:
	// 2026-10-23T04:30:00Z
	// 2026-10-26T05:30:00Z
}

// A customer gets no second reminder of an order within a day, also if the first was handled or cancelled.
func ExampleUniqueFor() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders")
	if err != nil {
		panic(err)
	}
	defer q.Close()

	remind := func(order string) {
		_, err := q.Push(ctx, nil, delayq.ID("remind-"+order), delayq.UniqueFor(24*time.Hour))
		switch {
		case err == nil:
			fmt.Println("order", order, "will be reminded of")
		case errors.Is(err, delayq.ErrDuplicate):
			fmt.Println("order", order, "has been reminded of already")
		default:
			panic(err)
		}
	}
	remind("17")
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	remind("17")
	// Output:
	// order 17 will be reminded of
	// order 17 has been reminded of already
}
