package recipes_test

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// stopWorkers stops the workers of all processes. They go on after two hours, if nobody ends the
// pause before.
func stopWorkers(ctx context.Context, q delayq.Queue) error {
	return q.PauseAll(ctx, delayq.PauseFor(2*time.Hour))
}

// A push goes on in a pause, and its message comes when the pause ends.
func Example_pause() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "mails", delayq.InMemory())
	check(err)
	defer q.Close()

	check(stopWorkers(ctx, q))
	_, err = q.Push(ctx, []byte("welcome"))
	check(err)
	stats, err := q.Stats(ctx)
	check(err)
	fmt.Println("paused:", stats.Paused, "ready:", stats.Ready)

	check(q.ResumeAll(ctx))
	d, err := q.Receive(ctx)
	check(err)
	fmt.Printf("%s\n", d.Body)
	// Output:
	// paused: true ready: 1
	// welcome
}
