package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/delayq/delayq"
)

// A handler's error can decide about the message.
func ExampleRetryAfter() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "payments", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()
	for _, body := range []string{"refund", "gibberish", "capture"} {
		if _, err := q.Push(ctx, []byte(body)); err != nil {
			panic(err)
		}
	}
	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		switch {
		case string(d.Body) == "gibberish":
			return fmt.Errorf("%w: no such kind of payment", delayq.ErrDeadLetter) // trying again would not help
		case string(d.Body) == "refund":
			return fmt.Errorf("%w: it was paid back by hand", delayq.ErrDrop)
		case d.Attempt == 1:
			return delayq.RetryAfter(errors.New("the bank is closed for 2 ms"), 2*time.Millisecond)
		}
		fmt.Printf("%s at attempt %d\n", d.Body, d.Attempt)
		stop()
		return nil
	})
	if err != nil {
		panic(err)
	}
	for l, err := range q.Dead().All(context.Background()) {
		fmt.Println(string(l.Body), "is dead:", l.Reason, err)
	}
	// Output:
	// capture at attempt 2
	// gibberish is dead: message cannot be handled: no such kind of payment <nil>
}

// Delays is a table of waits, the last of them for all further attempts.
func ExampleDelays() {
	p := delayq.Delays{10 * time.Second, time.Minute, time.Hour}
	for attempt := 1; attempt <= 4; attempt++ {
		fmt.Print(p.Delay(attempt, nil), " ")
	}
	// Output: 10s 1m0s 1h0m0s 1h0m0s
}
