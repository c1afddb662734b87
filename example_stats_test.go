package delayq_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/jonboulle/clockwork"
)

func ExampleQueue_Stats() {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	q, err := delayq.New(ctx, "orders", delayq.WithClock(clock))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	_, err = q.PushBatch(ctx, []delayq.Message{{}, {Delay: time.Minute}, {Delay: time.Hour}})
	if err != nil {
		panic(err)
	}
	if _, err := q.Receive(ctx); err != nil {
		panic(err)
	}
	clock.Advance(90 * time.Second) // past the second one's due time
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	// The first message's lease of 30 s is over: it waits for a worker again.
	fmt.Printf("scheduled %d, ready %d, in flight %d, dead %d\n", s.Scheduled, s.Ready, s.InFlight, s.Dead)
	fmt.Println("behind by", clock.Since(s.HeadDue))
	// Output:
	// scheduled 1, ready 2, in flight 0, dead 0
	// behind by 1m30s
}
