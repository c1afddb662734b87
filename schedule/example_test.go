package schedule_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/schedule"
)

// A report is due at half past six on working days. The fake clock lets a weekend pass in no time.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) // a Friday
	q, err := delayq.New(ctx, "reports", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close() // which also ends the Repeat

	workdays, err := schedule.Cron("30 6 * * MON-FRI")
	if err != nil {
		panic(err)
	}
	go func() {
		if err := schedule.Repeat(ctx, q, "daily", workdays, []byte("figures")); err != nil {
			panic(err)
		}
	}()
	if err := clock.BlockUntilContext(ctx, 1); err != nil { // until Repeat sleeps
		panic(err)
	}
	clock.Advance(3 * 24 * time.Hour)
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.ID)
	if err := d.Ack(ctx); err != nil {
		panic(err)
	}
	// Output:
	// daily@2026-05-04T06:30:00Z
}

// Every process of the service runs the same Repeat; each hour there is one message. Two hours pass
// here in no time.
func ExampleRepeat() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 11, 30, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "reports", delayq.InMemory(), delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for range 3 { // in three processes, say
		go func() {
			if err := schedule.Repeat(ctx, q, "hourly", schedule.Every(time.Hour), []byte("figures")); err != nil {
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
	s, err := schedule.CronIn("30 6 * * MON-FRI", berlin)
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
