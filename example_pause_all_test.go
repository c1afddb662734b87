package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// The service that the handlers call is being repaired. The pause ends by itself where nobody
// remembers to end it.
func ExampleQueue_PauseAll() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "orders")
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if err := q.PauseAll(ctx, delayq.PauseFor(2*time.Hour)); err != nil {
		panic(err)
	}
	if _, err := q.Push(ctx, []byte("pushes go on")); err != nil {
		panic(err)
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = q.Receive(soon)
	fmt.Println("nothing comes:", errors.Is(err, context.DeadlineExceeded))
	stats, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("paused: %t, ready: %d\n", stats.Paused, stats.Ready)

	if err := q.ResumeAll(ctx); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", d.Body)
	// Output:
	// nothing comes: true
	// paused: true, ready: 1
	// pushes go on
}
