package delayq_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/delayq/delayq"
)

// The log has each handler's failure, and the time of the next try.
func ExampleWithLogger() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q, err := delayq.New(ctx, "orders", delayq.InMemory(), delayq.WithLogger(logger))
	if err != nil {
		panic(err)
	}
	defer q.Close()

	if _, err := q.Push(ctx, nil, delayq.ID("order-17")); err != nil {
		panic(err)
	}
	err = q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
		stop()
		return errors.New("no route to the bank")
	}, delayq.Retry(delayq.Backoff{Base: time.Minute, Max: time.Minute, Factor: 1}))
	if err != nil {
		panic(err)
	}
	// Output: level=WARN msg="delayq: handler failed" queue=orders backend=memory id=order-17 attempt=1 retry=1m0s err="no route to the bank"
}
