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
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithClock(clock))
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
	fmt.Println("behind by", s.OldestReady)
	// Output:
	// scheduled 1, ready 2, in flight 0, dead 0
	// behind by 1m30s
}

func ExampleDueBounds() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders")
	if err != nil {
		panic(err)
	}
	defer q.Close()

	for _, delay := range []time.Duration{30 * time.Second, 5 * time.Minute, 8 * time.Minute, 30 * 24 * time.Hour} {
		if _, err := q.Push(ctx, nil, delayq.After(delay)); err != nil {
			panic(err)
		}
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	soon := int64(0)
	for i, bound := range delayq.DueBounds() {
		soon += s.Due[i] // each message is in one interval
		fmt.Printf("due within %v: %d\n", bound, soon)
	}
	fmt.Println("later:", s.Due[len(s.Due)-1])
	// Output:
	// due within 1m0s: 1
	// due within 10m0s: 3
	// due within 1h0m0s: 3
	// due within 6h0m0s: 3
	// due within 24h0m0s: 3
	// due within 168h0m0s: 3
	// later: 1
}
