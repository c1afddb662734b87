package delayq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
)

// A hundred thousand reminders for nine o'clock go out over ten minutes.
func ExampleSpread() {
	ctx := context.Background()
	nine := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	q, err := delayq.New(ctx, "reminders", delayq.InMemory(),
		delayq.WithClock(clockwork.NewFakeClockAt(nine.Add(-time.Hour))),
		delayq.WithRandom(rand.NewPCG(1, 2))) // the same times in each run of this example
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for range 3 {
		if _, err := q.Push(ctx, nil, delayq.At(nine), delayq.Spread(10*time.Minute)); err != nil {
			panic(err)
		}
	}
	page, _, err := q.Peek(ctx, "", 3)
	if err != nil {
		panic(err)
	}
	for _, p := range page {
		fmt.Println(p.Due.UTC().Format(time.TimeOnly))
	}
	// Output:
	// 09:06:09
	// 09:07:41
	// 09:07:50
}
