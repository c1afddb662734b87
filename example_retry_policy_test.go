package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/delayq/delayq"
)

// busyError is an API's error that names the time of the next try.
type busyError struct{ retryAfter time.Duration }

func (e *busyError) Error() string { return fmt.Sprintf("busy for %v", e.retryAfter) }

// asTold waits as long as the other side asked for, and otherwise as another policy decides.
type asTold struct{ otherwise delayq.RetryPolicy }

func (p asTold) Delay(attempt int, err error) time.Duration {
	var busy *busyError
	if errors.As(err, &busy) {
		return busy.retryAfter
	}
	return p.otherwise.Delay(attempt, err)
}

func ExampleRetryPolicy() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "invoices", delayq.InMemory(), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, []byte("invoice 3")); err != nil {
		panic(err)
	}
	err = q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
		if d.Attempt == 1 {
			return &busyError{retryAfter: 5 * time.Millisecond}
		}
		fmt.Printf("%s sent at attempt %d\n", d.Body, d.Attempt)
		stop()
		return nil
	}, delayq.Retry(asTold{otherwise: delayq.Exponential(time.Second, time.Hour)}))
	if err != nil {
		panic(err)
	}
	// Output: invoice 3 sent at attempt 2
}

// Without jitter the waits are exact; Exponential takes up to half of each away at random.
func ExampleBackoff() {
	b := delayq.Backoff{Base: time.Second, Max: 10 * time.Second, Factor: 2}
	for attempt := 1; attempt <= 5; attempt++ {
		fmt.Print(b.Delay(attempt, nil), " ")
	}
	// Output: 1s 2s 4s 8s 10s
}

func ExampleExponential() {
	p := delayq.Exponential(time.Second, time.Hour)
	d := p.Delay(3, nil)
	fmt.Println(d > 2*time.Second && d <= 4*time.Second)
	// Output: true
}
